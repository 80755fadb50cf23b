echo compiling
test -e fixed || { echo "port.c:3: error: no"; exit 3; }
# x
