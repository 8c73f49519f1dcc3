# cmake -DOUT=file.c -DFILE=a.js -P embed_script.cmake: a page's script as an array of bytes, and its SHA-256 in base64, by
# which the page's policy lets it run, and no other.
file(READ ${FILE} bytes HEX)
file(SHA256 ${FILE} sum)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")

set(letters ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
set(base64 "")
foreach(at RANGE 0 60 6)
  string(SUBSTRING "${sum}00" ${at} 6 three) # 32 bytes, and one of zeros
  foreach(shift 18 12 6 0)
    math(EXPR letter "(0x${three} >> ${shift}) & 63")
    string(SUBSTRING ${letters} ${letter} 1 letter)
    string(APPEND base64 ${letter})
  endforeach()
endforeach()
string(REGEX REPLACE "A$" "=" base64 ${base64})

file(WRITE ${OUT} "/* Made by cmake/embed_script.cmake. */
#include \"report/style.h\"

const char stk_report_script[] = {${bytes}0};
const char stk_report_script_sum[] = \"${base64}\";
")
