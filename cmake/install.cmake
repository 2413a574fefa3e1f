# The program, its licence, and the demo model where `muster run` finds it.
install(TARGETS muster RUNTIME DESTINATION bin)
install(FILES LICENSE DESTINATION share/doc/muster)
install(FILES models/demo/demo-moe-q8_0.gguf DESTINATION share/muster OPTIONAL)
