# error: f "*fp32"
<!DOCTYPE html>
<html><body>404: not found</body></html>
# == error f "*fp32"
# error[F02]: expected a statement
#  --> markup.py:2:1
#   |
# 2 | <!DOCTYPE html>
#   | ^
#   |
# help: the text must be what Python 3 accepts
#
# error[F02]: expected a statement
#  --> markup.py:3:1
#   |
# 3 | <html><body>404: not found</body></html>
#   | ^
#   |
# help: the text must be what Python 3 accepts
