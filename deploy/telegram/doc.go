// Package telegram drives teled as people do: with the suite behind it, and a Telegram made for
// the purpose before it.
package telegram
