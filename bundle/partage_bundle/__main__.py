from partage_bundle.cli import main

main()
