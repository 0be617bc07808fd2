# error: f "*fp32"
@triton.jit
def f(x):
<<<<<<< HEAD
    tl.store(x, 1.0)
=======
    tl.store(x, 2.0)
>>>>>>> other
# == error f "*fp32"
# error[F02]: expected an indented block after function definition
#  --> conflict_marks.py:4:1
#   |
# 4 | <<<<<<< HEAD
#   | ^^
#   |
# help: this is left of two versions that were merged; choose one
#
# error[F02]: unexpected indentation
#  --> conflict_marks.py:5:1
#   |
# 5 |     tl.store(x, 1.0)
#   | ^^^^
#   |
# help: the text must be what Python 3 accepts
#
# error[F02]: expected a statement
#  --> conflict_marks.py:6:1
#   |
# 6 | =======
#   | ^^
#   |
# help: this is left of two versions that were merged; choose one
#
# error[F02]: unexpected indentation
#  --> conflict_marks.py:7:1
#   |
# 7 |     tl.store(x, 2.0)
#   | ^^^^
#   |
# help: the text must be what Python 3 accepts
#
# error[F02]: expected a statement
#  --> conflict_marks.py:8:1
#   |
# 8 | >>>>>>> other
#   | ^^
#   |
# help: this is left of two versions that were merged; choose one
