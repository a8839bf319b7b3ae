package services

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/pkg/layers"
	"arizuko/pkg/msg"
	"arizuko/pkg/why"
)

// Answers to /why; %s is the command, as it is written in the chat.
const (
	whyUsage   = "Which message? Write %[1]s as a reply to it, or %[1]s with its number."
	whyUnknown = "The message that you replied to is not stored: the bot did not receive it, or it was deleted since. %s NUMBER works for any message."
	whyFailed  = "The database cannot be read right now. Try again later."
)

// answerCommand answers a command that this process itself answers, and that takes many reads or a call.
func (s *Services) answerCommand(ctx context.Context, p decide.AskService, m *msg.Message) string {
	// It was found to be a command of ours when it was decided.
	cmd, _ := layers.ParseCommand(m.Content, msg.FamilyOf(m.ChatJID), func(string) bool { return true })
	args := strings.TrimSpace(cmd.Args)
	c := choice{Services: s, folder: p.Folder, chat: m.ChatJID, operator: p.Operator, by: m.Sender, wanted: args}
	switch cmd.Name {
	case msg.CommandAgent:
		return c.answer(ctx, c.agent)
	case msg.CommandModel:
		return c.answer(ctx, c.model)
	}
	return s.explain(ctx, m, args)
}

// explain answers /why: the path of the message that the command replies to, or that it names.
func (s *Services) explain(ctx context.Context, m *msg.Message, args string) string {
	id, problem := s.asksAbout(ctx, m, args)
	if problem != "" {
		return problem
	}
	path, err := why.Read(ctx, s.Store, id)
	switch {
	case errors.Is(err, why.ErrNoMessage):
		return fmt.Sprintf("There is no message %d.", id)
	case err != nil:
		s.Log.Error("explaining a message failed", "row", id, "err", err)
		return whyFailed
	}
	return why.Brief(path, s.Now())
}

// asksAbout returns the message that a command asks about, or the problem of the command.
func (s *Services) asksAbout(ctx context.Context, m *msg.Message, args string) (id int64, problem string) {
	command := msg.CommandIn(m.ChatJID, msg.CommandWhy)
	if args != "" {
		id, err := strconv.ParseInt(strings.TrimPrefix(args, "#"), 10, 64)
		if err != nil || id <= 0 {
			return 0, fmt.Sprintf(whyUsage, command)
		}
		return id, ""
	}
	if m.ReplyToID == "" {
		return 0, fmt.Sprintf(whyUsage, command)
	}
	asked, err := s.Store.MessageByPlatformID(ctx, m.ChatJID, m.ReplyToID)
	switch {
	case err != nil:
		s.Log.Error("reading the message that a command replies to failed", "row", m.ID, "err", err)
		return 0, whyFailed
	case asked == nil:
		return 0, fmt.Sprintf(whyUnknown, command)
	}
	return asked.ID, ""
}
