// Package platforms drives the adapters of Telegram, Discord and Slack as people do: with the suite
// behind them, and a platform made for the purpose before each. What happens is told once for all
// three; what only one of them knows has a file of its own.
package platforms
