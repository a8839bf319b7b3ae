package main

import (
	"context"
	"time"

	"arizuko/pkg/store"
	"arizuko/slakd/internal/typing"
)

// typingLasts is how soon the next message is marked where one turn follows another.
const typingLasts = 5 * time.Second

// Type implements adapter.Typist.
func (s *slack) Type(ctx context.Context, in store.Lane) error { return s.signs().Show(ctx, in, true) }

// TypingFor implements adapter.Typist.
func (s *slack) TypingFor() time.Duration { return typingLasts }

// EndTyping implements adapter.TypingEnder.
func (s *slack) EndTyping(ctx context.Context, in store.Lane) error {
	return s.signs().Show(ctx, in, false)
}

func (s *slack) signs() typing.Signs {
	return typing.Signs{API: s.api, Store: s.store, Daemon: name}
}
