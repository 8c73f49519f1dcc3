# Writes FILES, one behind the other, as one text that ends in 0: cmake -DNAME=.. -DOUTPUT=.. "-DFILES=a;b" -P embed.cmake
set(hex "")
foreach(file ${FILES})
  file(READ ${file} part HEX)
  string(APPEND hex "${part}")
endforeach()
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE ${OUTPUT} "extern const char ${NAME}[];\nconst char ${NAME}[] = {${bytes}0};\n")
