# kiln_proto (generated messages and services) and kiln_wire (wire.h, wire.cc).
