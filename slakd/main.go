// Slakd is Slack's adapter: it stores what happens there as rows, and delivers outbound rows.
//
//	slakd [serve]          runs until SIGTERM
//	slakd check | health   checks configuration and app; reports whether slakd is ready
package main

import (
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/daemon"
	"arizuko/slakd/internal/events"
	"arizuko/slakd/internal/outbound"
	"arizuko/slakd/internal/slackapi"
)

const name = "slakd"

func main() { adapter.Main(program()) }

func program() adapter.Program[Config] {
	return adapter.Program[Config]{
		Name: name, Platform: "slack", Pace: outbound.Pace(), Load: loadConfig, Check: check, Build: build(0),
	}
}

// build makes the adapter, for a Slack of that patience.
func build(patience time.Duration) func(Config, *daemon.Process, adapter.Identity) (adapter.Platform,
	adapter.Listener) {
	return func(cfg Config, p *daemon.Process, as adapter.Identity) (adapter.Platform, adapter.Listener) {
		api := slackapi.NewClient(string(cfg.APIURL), cfg.BotToken, cfg.AppToken, adapter.NewCallClient())
		listening := slackapi.NewClient(string(cfg.APIURL), cfg.BotToken, cfg.AppToken, adapter.NewListenClient())
		sender := &outbound.Sender{API: api, Identity: as, Data: cfg.Data, Store: p.Store, Log: p.Log}
		o := events.Options{
			API: listening, Store: p.Store, Identity: as, RemoveStaleMarks: sender.RemoveStaleMarks, Now: p.Now,
			Patience: patience,
			UserApps: cfg.UserApps,
		}
		if !cfg.socketMode() {
			o.SigningSecret = cfg.SigningSecret
		}
		return sender, events.New(o)
	}
}
