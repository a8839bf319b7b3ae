// Teled is Telegram's adapter: it stores what happens there as rows, and delivers outbound rows.
//
//	teled [serve]          runs until SIGTERM
//	teled check | health   checks configuration and bot; reports whether teled is ready
package main

import (
	"arizuko/pkg/adapter"
	"arizuko/pkg/daemon"
	"arizuko/teled/internal/bot"
	"arizuko/teled/internal/events"
	"arizuko/teled/internal/outbound"
	"arizuko/teled/internal/telegramapi"
)

func main() { adapter.Main(program()) }

func program() adapter.Program[Config] {
	return adapter.Program[Config]{
		Name: "teled", Platform: "telegram", Pace: outbound.Pace(), Load: loadConfig, Check: check, Build: build,
	}
}

func build(cfg Config, p *daemon.Process, as adapter.Identity) (adapter.Platform, adapter.Listener) {
	api := telegramapi.NewClient(string(cfg.APIURL), cfg.Token, outbound.NewCeiling().Keep(adapter.NewCallClient()))
	listening := telegramapi.NewClient(string(cfg.APIURL), cfg.Token, adapter.NewListenClient())
	self := &bot.Bot{API: api, Store: p.Store, Daemon: as.Daemon, Log: p.Log, Now: p.Now}
	return &outbound.Sender{API: api, Bot: self, Identity: as, Data: cfg.Data, Store: p.Store, Now: p.Now, Log: p.Log,
			Local: cfg.Local},
		&events.Listener{API: listening, Bot: self, Store: p.Store, Local: cfg.Local}
}
