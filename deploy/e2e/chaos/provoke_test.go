package main

import (
	"slices"
	"strings"
	"testing"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/fakes/telegram"
)

func TestProvocationOf_EveryFailpoint_HasOne(t *testing.T) {
	for daemon, points := range pathPoints {
		for _, point := range points {
			if p := provocationOf(crash{daemon, point, 1}); p.before == nil && p.down == nil && p.up == nil {
				t.Errorf("%s has no provocation of %s", daemon, point)
			}
		}
	}
}

func TestProvocationOf_PointOfAdapter_UsesItsPlatform(t *testing.T) {
	platforms := []chatsim.Platform{chatsim.NewTelegram(platformSize, telegram.Options{}), chatsim.NewDiscord(platformSize, discord.Options{})}
	for daemon, platform := range map[string]string{"teled": "telegram", "discd": "discord", "dashd": "web"} {
		g := newGenerator(seeded(1), platforms, nil, nil, nil)
		how := provocationOf(crash{daemon, adapterPoints[0], maxNth})
		if err := (&provoker{load: g, daemon: daemon}).run(t.Context(), how.up, maxNth); err != nil {
			t.Fatal(err)
		}
		in := map[string]int{}
		for _, m := range g.all {
			at, _ := msg.SplitJID(m.chat)
			if at != platform || !m.mustAnswer {
				t.Errorf("for %s: %+v", daemon, m)
			}
			in[m.chat]++
		}
		if platform != "web" && len(in) != maxNth {
			t.Errorf("for %s: %d messages in %d chats", daemon, len(g.all), len(in))
		}
		if s := g.web["web:main"]; platform == "web" && len(s.queue) != maxNth {
			t.Errorf("%d web messages", len(s.queue))
		}
	}
}

func TestGenerator_AnsweredChats_AreTracked(t *testing.T) {
	g := newGenerator(seeded(1), newPlatforms(), nil, nil, nil)
	for _, daemon := range []string{"teled", "discd", "slakd"} {
		chats := g.answeredChats(daemon)
		if len(chats) < maxNth {
			t.Errorf("%s: %d chats", daemon, len(chats))
		}
		for _, c := range chats {
			if c.NeedsMention || c.Mutates || !slices.ContainsFunc(slices.Concat(g.tracked...), func(o chatsim.Conversation) bool { return o == c }) {
				t.Errorf("%s: %+v", daemon, c)
			}
		}
	}
	for _, c := range g.answeredChats(webDaemon) {
		if !strings.HasPrefix(c.Chat, "web:") {
			t.Errorf("web: %+v", c)
		}
	}
}
