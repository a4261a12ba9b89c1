# cmake -DOUT=FILE -DFILES=A,B,... -P answers_version.cmake: the files' digest as a constant (answers_version.h).
string(REPLACE "," ";" FILES "${FILES}")
set(ALL "")
foreach(FILE ${FILES})
  file(SHA256 ${FILE} DIGEST)
  string(APPEND ALL "${DIGEST}\n")
endforeach()
string(SHA256 ALL "${ALL}")
string(SUBSTRING "${ALL}" 0 15 ALL)
file(WRITE ${OUT} "#include \"server/answers_version.h\"\n\nnamespace kiln::server {\n\n"
  "const int64_t kAnswersVersion = 0x${ALL};\n\n}  // namespace kiln::server\n")
