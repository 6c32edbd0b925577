from partage_ui.cli import main

main()
