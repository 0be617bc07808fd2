from .norm import combine
from .special import square
