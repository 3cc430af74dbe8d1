"""The enums, structs and formats of d3d12.h, and checks of arguments; imports no other room."""
