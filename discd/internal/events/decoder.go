package events

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/bwmarrin/discordgo"

	"arizuko/discd/internal/discordapi"
	"arizuko/discd/internal/inbound"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// decoder makes rows of the events of a session.
type decoder struct {
	guilds  *inbound.Guilds
	ballots *adapter.Ballots
	convert func(*discordapi.Update, inbound.Self, *inbound.Guilds) (adapter.Inbound, error)
	session string // of the gateway, in which its events are numbered
	me      inbound.Self
}

func eventName(e *discordgo.Event) string { return fmt.Sprint(e.Type, " ", e.Sequence) }

// parse reads an event, or reports that it is skipped.
func (d *decoder) parse(s *adapter.Shell, e *discordgo.Event) (u *discordapi.Update, ok bool) {
	ok = s.Decode(eventName(e), func() (err error) {
		u, err = discordapi.ParseUpdate(e.Type, d.session, e.Sequence, e.RawData)
		return err
	})
	return u, ok
}

// rows makes rows of an event, or reports that it is skipped.
func (d *decoder) rows(s *adapter.Shell, u *discordapi.Update, e *discordgo.Event) (in adapter.Inbound, ok bool) {
	ok = s.Decode(eventName(e), func() (err error) { in, err = d.convert(u, d.me, d.guilds); return err })
	return in, ok
}

// missed makes rows of a message that was missed, or reports that it is skipped. Texts that came as files are given by
// the URLs of these.
func (d *decoder) missed(s *adapter.Shell, e *discordgo.Event, pasted map[string]string) (u *discordapi.Update,
	in adapter.Inbound, ok bool) {
	if u, ok = d.parse(s, e); !ok {
		return nil, in, false
	}
	for _, of := range inbound.Pastes(u.Message) {
		of.Pasted = pasted[of.Attachments[0].URL]
	}
	in, ok = d.rows(s, u, e)
	return u, in, ok
}

// learn caches an event's facts about guilds.
func (d *decoder) learn(s *adapter.Shell, u *discordapi.Update) {
	s.Decode(u.Type, func() error { d.guilds.Learn(u, d.me); return nil })
}

// receiveBallot drops votes in polls of others, and the ends of those. A vote in a poll that is being sent
// waits for its id.
func (d *decoder) receiveBallot(ctx context.Context, s *adapter.Shell, in *adapter.Inbound) error {
	if len(in.Messages) != 1 || in.Messages[0].Verb != msg.VerbVote && in.Messages[0].Verb != msg.VerbPollEnd {
		return nil
	}
	event, err := json.Marshal(in)
	if err != nil {
		s.SkipUndecoded("vote", err)
		in.Messages = nil
		return nil
	}
	m := in.Messages[0]
	*in, err = d.ballots.Receive(ctx, s, adapter.Ballot{ChatJID: m.ChatJID, Ref: m.ChatJID + " " + m.TargetID,
		Event: event}, nil)
	return err
}

// ballots finds the polls of votes by their messages.
func ballots(st *store.Store) *adapter.Ballots {
	return &adapter.Ballots{
		Find: func(ctx context.Context, b *adapter.Ballot) (*msg.Message, error) {
			chat, id, _ := strings.Cut(b.Ref, " ")
			return st.MessageByPlatformID(ctx, chat, id)
		},
		Make: func(b *adapter.Ballot, _ *msg.Message) (in adapter.Inbound, err error) {
			err = json.Unmarshal(b.Event, &in)
			return in, err
		},
	}
}
