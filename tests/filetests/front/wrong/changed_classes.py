# Lists of classes that change by way of something else than the name of the class.
# error: by_others "*i32"
# error: by_makers "*i32"
# tile: untouched "*i32"
import enum

import triton
import triton.language as tl
from somewhere import Model, register


class Inherited:
    LIST = [1]


class Heir(Inherited):
    N = 1


Heir.LIST.append(2)


class Element:
    LIST = [1]


Heir.LIST[0] = 4
del Heir.LIST[0]


class Inherited2:
    LIST = [1]


class Heir2(Inherited2):
    pass


Heir2.LIST += [3]


class Outer:
    class Inner:
        LIST = [1]


Outer.Inner.LIST.append(3)


class Given:
    LIST = [1]


def put(into):
    into.LIST.append(3)


put(Given)


class InTuple:
    LIST = [1]


CLASSES = (InTuple,)
CLASSES[0].LIST.append(6)


class ByName:
    LIST = [1]


getattr(ByName, "LIST").append(6)


class InLoop:
    LIST = [1]


for each in [InLoop]:
    each.LIST.append(6)


class Chosen:
    LIST = [1]


(Chosen or 0).LIST.append(6)


class HoldsOther:
    LIST = CLASSES


class OfTable:
    LIST = [1]


vars(OfTable)["LIST"].append(6)


class Decorated:
    LIST = [1]


def changes(decorated):
    decorated.LIST.append(1)
    return decorated


@changes
class Decorated:
    LIST = [1]


class HandedOut:
    LIST = [1]


register(HandedOut)


class Untouched(Heir):
    N = 3


@triton.jit
def by_others(out):
    tl.store(out, Inherited.LIST[0])
    tl.store(out, Heir.LIST[0])
    tl.store(out, Heir2.LIST[0])
    tl.store(out, Outer.Inner.LIST[0])
    tl.store(out, Given.LIST[0])
    tl.store(out, InTuple.LIST[0])
    tl.store(out, ByName.LIST[0])
    tl.store(out, InLoop.LIST[0])
    tl.store(out, Chosen.LIST[0])
    tl.store(out, OfTable.LIST[0])
    tl.store(out, Decorated.LIST[0])
    tl.store(out, HandedOut.LIST[0])


class Meta(type):
    def __new__(meta, name, bases, names):
        names["N"] = 9
        return type.__new__(meta, name, bases, names)


class Made(metaclass=Meta):
    N = 1


class Hook:
    def __init_subclass__(cls):
        cls.N = 9


class Hooked(Hook):
    N = 1


class OfOthers(Model):
    N = 1


@register
class Registered:
    N = 1


class ByCall(put(Given) or Heir):
    M = 1


class Same(enum.Enum):
    A = 1

    def __eq__(self, other):
        return True


@triton.jit
def by_makers(out):
    tl.store(out, Made.N)
    tl.store(out, Hooked.N)
    tl.store(out, OfOthers.N)
    tl.store(out, Registered.N)
    tl.store(out, ByCall.N)
    tl.store(out, Same.A.value)


@triton.jit
def untouched(out):
    tl.store(out, Untouched.N)
    tl.store(out, Heir.N)
