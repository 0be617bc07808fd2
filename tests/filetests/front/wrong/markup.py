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
#  --> markup.py:2:2
#   |
# 2 | <!DOCTYPE html>
#   |  ^
#   |
# help: the text must be what Python 3 accepts
#
# error[F02]: simple statements must be separated by newlines or semicolons
#  --> markup.py:2:11
#   |
# 2 | <!DOCTYPE html>
#   |           ^^^^
#   |
# help: the text must be what Python 3 accepts
#
# error[F02]: expected an expression
#  --> markup.py:2:16
#   |
# 2 | <!DOCTYPE html>
#   |                ^
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
#
# error[F02]: expected an expression
#  --> markup.py:3:7
#   |
# 3 | <html><body>404: not found</body></html>
#   |       ^
#   |
# help: the text must be what Python 3 accepts
#
# error[F02]: invalid annotated assignment target
#  --> markup.py:3:2
#   |
# 3 | <html><body>404: not found</body></html>
#   |  ^^^^^^^^^^^^^^
#   |
# help: the text must be what Python 3 accepts
#
# error[F02]: expected an expression
#  --> markup.py:3:28
#   |
# 3 | <html><body>404: not found</body></html>
#   |                            ^
#   |
# help: the text must be what Python 3 accepts
#
# error[F02]: expected an expression
#  --> markup.py:3:34
#   |
# 3 | <html><body>404: not found</body></html>
#   |                                  ^
#   |
# help: the text must be what Python 3 accepts
#
# error[F02]: expected an expression
#  --> markup.py:3:35
#   |
# 3 | <html><body>404: not found</body></html>
#   |                                   ^
#   |
# help: the text must be what Python 3 accepts
#
# error[F02]: expected an expression
#  --> markup.py:3:41
#   |
# 3 | <html><body>404: not found</body></html>
#   |                                         ^
#   |
# help: the text must be what Python 3 accepts
