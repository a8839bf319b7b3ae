package chatsim

import (
	"math/rand/v2"
	"strings"
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/fakes/slack"
	"arizuko/pkg/testkit/fakes/telegram"
)

func eachPlatform(t *testing.T, test func(*testing.T, Platform)) {
	size := Size{DMs: 5, Groups: 3}
	for name, newPlatform := range map[string]func() Platform{
		"telegram": func() Platform { return NewTelegram(size, telegram.Options{}) },
		"discord":  func() Platform { return NewDiscord(size, discord.Options{}) },
		"slack":    func() Platform { return NewSlack(size, slack.Options{}) },
	} {
		t.Run(name, func(t *testing.T) { test(t, newPlatform()) })
	}
}

func TestPlatform_Conversations_AcceptMessages(t *testing.T) {
	eachPlatform(t, func(t *testing.T, p Platform) {
		ids := map[[2]string]bool{}
		for _, c := range p.Conversations() {
			for _, verb := range []string{msg.VerbMessage, msg.VerbMention} {
				id, err := p.Do(Action{Conversation: c, Verb: verb, Text: "hello"})
				if at := [2]string{c.Chat, id}; err != nil || id == "" || ids[at] {
					t.Errorf("%s in %v: id %q, error %v", verb, c, id, err)
				} else {
					ids[at] = true
				}
			}
		}
	})
}

func TestPlatform_Conversations_HaveEveryKind(t *testing.T) {
	eachPlatform(t, func(t *testing.T, p Platform) {
		var dms, threads, mutating, noChild int
		for _, c := range p.Conversations() {
			if platform, _ := msg.SplitJID(c.Chat); platform != p.Info().Platform {
				t.Errorf("chat %s of platform %s", c.Chat, p.Info().Platform)
			}
			if !c.NeedsMention {
				dms++
			}
			if c.Thread != "" {
				threads++
			}
			if c.Mutates {
				mutating++
			}
			if c.NoChildGroup {
				noChild++
			}
		}
		if dms != 5 || threads == 0 || mutating != 3 || noChild != 1 {
			t.Errorf("%d DMs, %d threads, %d with mutations, %d without child group", dms, threads, mutating, noChild)
		}
	})
}

// TestPlatform_RandomFaults_HaveEveryKind: each kind of fault happens on each platform.
func TestPlatform_RandomFaults_HaveEveryKind(t *testing.T) {
	eachPlatform(t, func(t *testing.T, p Platform) {
		found := map[string]bool{}
		random := rand.New(rand.NewPCG(1, 0))
		for range 2000 {
			name := p.InjectRandomFault(random)
			if _, fault, ofCall := strings.Cut(name, ": "); ofCall {
				name = fault
			}
			found[name] = true
		}
		p.ClearFaults()
		for _, want := range []string{
			"500", "502 after processing", "503", "429", "slow", "connection dropped", "connection dropped after processing",
			"malformed response after processing", "duplicate events", "reordered events", "redelivered events", "malformed event",
		} {
			if !found[want] {
				t.Errorf("no fault %q", want)
			}
		}
	})
}
