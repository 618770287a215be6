"""The console: pages in the browser over the same code as the commands; nothing is deployed."""
