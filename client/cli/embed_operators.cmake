# Writes OUT, a C++ source with the programs of FILES: cmake -DOUT=... "-DFILES=a.kiln;b.kiln" -P embed_operators.cmake
set(ENTRIES "")
list(SORT FILES)
foreach(FILE IN LISTS FILES)
  get_filename_component(NAME ${FILE} NAME_WE)
  file(READ ${FILE} PROGRAM)
  string(APPEND ENTRIES "      {\"${NAME}\", R\"kiln(${PROGRAM})kiln\"},\n")
endforeach()
file(WRITE ${OUT} "#include \"client/cli/operators.h\"\n\nnamespace kiln::cli {\n\nconst std::vector<StandardOperator>& StandardOperators() {
  static const auto* operators = new std::vector<StandardOperator>{\n${ENTRIES}  };\n  return *operators;\n}\n\n}  // namespace kiln::cli\n")
