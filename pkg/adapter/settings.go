package adapter

import (
	"errors"
	"fmt"
	"time"

	"arizuko/pkg/config"
	"arizuko/pkg/msg"
)

// Settings are the variables of every adapter; it is embedded in each one's configuration.
type Settings struct {
	PollInterval   time.Duration `env:"POLL_INTERVAL" envDefault:"2s" doc:"how often the database is polled without being poked"`
	Bots           Bots          `env:"BOTS" envDefault:"none" doc:"which messages of other bots are stored: none, only those that mention this bot, or all"`
	Resend         Resend        `env:"RESEND" envDefault:"mark" doc:"what happens to a message that may have arrived before a crash: mark (sent again as a possible duplicate) or drop"`
	MaxAge         time.Duration `env:"MAX_AGE" envDefault:"24h" doc:"messages older than this that were missed are not read later; gated does not answer them either"`
	DeliveryMaxAge time.Duration `env:"DELIVERY_MAX_AGE" envDefault:"24h" doc:"how old an answer may be that is still tried while the platform is out of reach or fails; an older one fails"`
	MediaMax       int64         `env:"MEDIA_MAX" envDefault:"20971520" doc:"largest file of a message, in bytes"`
	MediaQuota     int64         `env:"MEDIA_QUOTA" envDefault:"2147483648" doc:"what all files of messages may take on the disk, in bytes: gated removes the oldest that no open turn needs"`
	MediaDaily     int64         `env:"MEDIA_DAILY" envDefault:"209715200" doc:"files of one chat that may be stored in a day, received and sent, in bytes"`
}

// Problems returns the invalid values that the types accept; an entry may be nil.
func (s *Settings) Problems() []error {
	errs := []error{config.CheckInterval("POLL_INTERVAL", s.PollInterval)}
	for name, age := range map[string]time.Duration{"MAX_AGE": s.MaxAge, "DELIVERY_MAX_AGE": s.DeliveryMaxAge} {
		if age <= 0 {
			errs = append(errs, fmt.Errorf("%s: must be above 0", name))
		}
	}
	for name, size := range map[string]int64{"MEDIA_MAX": s.MediaMax, "MEDIA_QUOTA": s.MediaQuota,
		"MEDIA_DAILY": s.MediaDaily} {
		if size <= 0 {
			errs = append(errs, fmt.Errorf("%s: must be above 0", name))
		}
	}
	return errs
}

// Account is the name of a further account of a platform, "" for the first one.
type Account string

// UnmarshalText returns an error for a name that cannot be part of addresses and file names.
func (a *Account) UnmarshalText(text []byte) error {
	if name := string(text); name != "" && !msg.IsAccount(name) {
		return errors.New("cannot be the name of an account: want at most 32 of a-z, 0-9, _ and -, beginning with a " +
			"letter or digit")
	}
	*a = Account(text)
	return nil
}

// Bots says which messages of other bots are stored.
type Bots string

// The choices.
const (
	NoBots      Bots = "none"
	BotMentions Bots = "mentions"
	AllBots     Bots = "all"
)

// UnmarshalText reads a choice.
func (b *Bots) UnmarshalText(text []byte) error {
	switch v := Bots(text); v {
	case NoBots, BotMentions, AllBots:
		*b = v
		return nil
	}
	return errors.New("must be none, mentions or all")
}

// Accepts reports whether a message is stored: every message of a user, and of bots those chosen.
func (b Bots) Accepts(m *msg.Message) bool {
	return !m.IsBot || b == AllBots || b == BotMentions && m.Verb == msg.VerbMention
}

// Resend says whether a part that may have arrived is sent again by a Marker, marked as a possible duplicate, while the
// platform answers: up to four times within 36 minutes.
type Resend string

// The choices.
const (
	ResendMarked Resend = "mark"
	ResendNever  Resend = "drop"
)

// UnmarshalText reads a choice.
func (r *Resend) UnmarshalText(text []byte) error {
	switch v := Resend(text); v {
	case ResendMarked, ResendNever:
		*r = v
		return nil
	}
	return errors.New("must be mark or drop")
}
