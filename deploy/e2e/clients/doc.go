// Package clients tests the fakes of the platforms with client libraries that others have written: grammY for
// Telegram, discord.js for Discord and Bolt for Slack. What their bots meet on the platforms, they meet here:
// what the platforms allow works, and what they refuse is refused in the same words. Deliveries of webhooks are signed
// and verified with the libraries of their senders, against a real dashd.
package clients
