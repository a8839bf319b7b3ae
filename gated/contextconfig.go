package main

import (
	"fmt"
	"time"

	"arizuko/gated/internal/contextobjects"
	"arizuko/pkg/config"
)

// ContextConfig is the part of Config about active context objects.
type ContextConfig struct {
	ContextTTLMedium time.Duration          `env:"CONTEXT_TTL_MEDIUM" envDefault:"2h" doc:"how long an article, summary or link stays an active context object after its last touch"`
	ContextTTLMedia  time.Duration          `env:"CONTEXT_TTL_MEDIA" envDefault:"1h" doc:"the same for images, videos, voice messages and documents"`
	ContextTTLShort  time.Duration          `env:"CONTEXT_TTL_SHORT" envDefault:"20m" doc:"the same for reminders and messages"`
	ContextPollGrace time.Duration          `env:"CONTEXT_POLL_GRACE" envDefault:"15m" doc:"how long a poll stays active after it was closed"`
	ContextTTLMax    time.Duration          `env:"CONTEXT_TTL_MAX" envDefault:"24h" doc:"the longest time that an object other than a poll stays active, however often it is touched"`
	ContextWeights   contextobjects.Weights `env:"CONTEXT_WEIGHTS" envDefault:"reply_chain=100,topic=60,recent=30,explicit=20,kind=20,open=15,owned=10,fallback=-30,near_expiry=-15" doc:"what each fact adds to an active object's rank, as name=number,…; those left out keep their default"`
}

func (c ContextConfig) contextObjects() *contextobjects.Objects {
	return &contextobjects.Objects{Weights: c.ContextWeights, TTLs: contextobjects.TTLs{
		Medium: c.ContextTTLMedium, Media: c.ContextTTLMedia, Short: c.ContextTTLShort, PollGrace: c.ContextPollGrace,
		Max: c.ContextTTLMax,
	}}
}

// validate checks that objects end, and do not outlive the messages that they come from.
func (c ContextConfig) validateContext(retention time.Duration) (all []error) {
	for name, d := range map[string]time.Duration{"CONTEXT_TTL_MEDIUM": c.ContextTTLMedium,
		"CONTEXT_TTL_MEDIA": c.ContextTTLMedia,
		"CONTEXT_TTL_SHORT": c.ContextTTLShort, "CONTEXT_POLL_GRACE": c.ContextPollGrace,
		"CONTEXT_TTL_MAX": c.ContextTTLMax} {
		if err := config.CheckInterval(name, d); err != nil {
			all = append(all, err)
		}
	}
	if retention > 0 && c.ContextTTLMax > retention {
		all = append(all, fmt.Errorf("CONTEXT_TTL_MAX: %s is longer than RETENTION_DAYS", c.ContextTTLMax))
	}
	return all
}
