// Package compose tests docker-compose.yml, the images and the units of systemd: the files as they are
// written, and an instance that Debian's Compose starts on a Docker engine of its own.
package compose
