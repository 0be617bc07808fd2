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


class ByCall(put(3) or Heir):
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
# == error by_others "*i32"
# error[F05]: `Inherited.LIST` has no value here
#    --> changed_classes.py:129:19
#     |
# 129 |     tl.store(out, Inherited.LIST[0])
#     |                   ^^^^^^^^^^^^^^ line 20 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
#
# error[F05]: `Heir.LIST` has no value here
#    --> changed_classes.py:130:19
#     |
# 130 |     tl.store(out, Heir.LIST[0])
#     |                   ^^^^^^^^^ line 20 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
#
# error[F05]: `Heir2.LIST` has no value here
#    --> changed_classes.py:131:19
#     |
# 131 |     tl.store(out, Heir2.LIST[0])
#     |                   ^^^^^^^^^^ line 39 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
#
# error[F05]: `Outer.Inner` has no value here
#    --> changed_classes.py:132:19
#     |
# 132 |     tl.store(out, Outer.Inner.LIST[0])
#     |                   ^^^^^^^^^^^ line 47 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
#
# error[F05]: `Given.LIST` has no value here
#    --> changed_classes.py:133:19
#     |
# 133 |     tl.store(out, Given.LIST[0])
#     |                   ^^^^^^^^^^ line 20 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
#
# error[F05]: `InTuple.LIST` has no value here
#    --> changed_classes.py:134:19
#     |
# 134 |     tl.store(out, InTuple.LIST[0])
#     |                   ^^^^^^^^^^^^ line 66 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
#
# error[F05]: `ByName.LIST` has no value here
#    --> changed_classes.py:135:19
#     |
# 135 |     tl.store(out, ByName.LIST[0])
#     |                   ^^^^^^^^^^^ line 73 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
#
# error[F05]: `InLoop.LIST` has no value here
#    --> changed_classes.py:136:19
#     |
# 136 |     tl.store(out, InLoop.LIST[0])
#     |                   ^^^^^^^^^^^ line 81 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
#
# error[F05]: `Chosen.LIST` has no value here
#    --> changed_classes.py:137:19
#     |
# 137 |     tl.store(out, Chosen.LIST[0])
#     |                   ^^^^^^^^^^^ line 88 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
#
# error[F05]: `OfTable.LIST` has no value here
#    --> changed_classes.py:138:19
#     |
# 138 |     tl.store(out, OfTable.LIST[0])
#     |                   ^^^^^^^^^^^^ line 99 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
#
# error[F05]: `Decorated.LIST` has no value here
#    --> changed_classes.py:139:19
#     |
# 139 |     tl.store(out, Decorated.LIST[0])
#     |                   ^^^^^^^^^^^^^^ line 111 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
#
# error[F05]: `HandedOut.LIST` has no value here
#    --> changed_classes.py:140:19
#     |
# 140 |     tl.store(out, HandedOut.LIST[0])
#     |                   ^^^^^^^^^^^^^^ line 120 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
# == error by_makers "*i32"
# error[F05]: `Made.N` has no value here
#    --> changed_classes.py:184:19
#     |
# 184 |     tl.store(out, Made.N)
#     |                   ^^^^^^ line 149 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
#
# error[F05]: `Hooked.N` has no value here
#    --> changed_classes.py:185:19
#     |
# 185 |     tl.store(out, Hooked.N)
#     |                   ^^^^^^^^ line 158 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
#
# error[F05]: `OfOthers.N` has no value here
#    --> changed_classes.py:186:19
#     |
# 186 |     tl.store(out, OfOthers.N)
#     |                   ^^^^^^^^^^ line 162 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
#
# error[F05]: `Registered.N` has no value here
#    --> changed_classes.py:187:19
#     |
# 187 |     tl.store(out, Registered.N)
#     |                   ^^^^^^^^^^^^ line 166 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
#
# error[F05]: `ByCall.N` has no value here
#    --> changed_classes.py:188:19
#     |
# 188 |     tl.store(out, ByCall.N)
#     |                   ^^^^^^^^ line 171 changes it, or hands it to what may
#     |
# help: define it once, in the body of the class
#
# error[F07]: members of `Same` are what its `__eq__` makes them
#    --> changed_classes.py:189:19
#     |
# 189 |     tl.store(out, Same.A.value)
#     |                   ^^^^^^
#     |
# help: give the class members alone, and ask for their `.value`
# == tile untouched "*i32"
# kernel @untouched(v0 "out": ptr<i32>) warps(4) {
# block0:
#     v1 = const {value = 3} : i32 @194
#     store v0, v1 @194
#     v2 = const {value = 1} : i32 @195
#     store v0, v2 @195
#     return @193
# }
