// Discd is Discord's adapter: it stores what happens there as rows, and delivers outbound rows.
//
//	discd [serve]          runs until SIGTERM
//	discd check | health   checks configuration and bot; reports whether discd is ready
package main

import (
	"arizuko/discd/internal/discordapi"
	"arizuko/discd/internal/events"
	"arizuko/discd/internal/outbound"
	"arizuko/pkg/adapter"
	"arizuko/pkg/daemon"
)

func main() { adapter.Main(program()) }

func program() adapter.Program[Config] {
	return adapter.Program[Config]{
		Name: "discd", Platform: "discord", Pace: outbound.Pace(), Load: loadConfig, Check: check, Build: build,
	}
}

func build(cfg Config, p *daemon.Process, as adapter.Identity) (adapter.Platform, adapter.Listener) {
	ceiling := outbound.NewCeiling()
	api := discordapi.NewClient(string(cfg.APIURL), cfg.Token, ceiling.Keep(adapter.NewCallClient()))
	return &outbound.Sender{API: api, Identity: as, Data: cfg.Data, Store: p.Store, Now: p.Now},
		events.NewListener(api.With(ceiling.Keep(adapter.NewListenClient())), p.Store, cfg.Token, adapter.Network{})
}
