// Package platforms tests whole instances with the adapters of Telegram, Discord and Slack, each
// connected to a fake platform with simulated users. Every scenario is written once and run on all
// three; scenarios of only one platform are in separate files.
package platforms
