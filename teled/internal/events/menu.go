package events

import (
	"context"
	"encoding/json"
	"slices"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/teled/internal/telegramapi"
)

// maxCommands is how many commands a menu may have.
const maxCommands = 100

// scopes are those in which the menu is offered. The default scope is the owner's: what was set there at
// @BotFather is never changed, and is shown in both.
func scopes() []string { return []string{"all_private_chats", "all_group_chats"} }

// command is an entry of the menu that opens behind "/".
type command struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}

// ours are gated's commands, as Telegram shows them.
func ours() (all []command) {
	for _, c := range msg.GatewayCommands() {
		all = append(all, command{c.Name, c.Help})
	}
	return all
}

// menuOf is the menu of a scope: gated's commands, then those of others. offered is what teled put there last: what
// is there besides was set by others, and stays. own is what teled puts there now.
func menuOf(inScope, offered, inDefault []command) (menu, own []command) {
	menu = ours()
	add := func(more []command) {
		for _, c := range more {
			at := slices.IndexFunc(menu, func(other command) bool { return other.Command == c.Command })
			switch {
			case at >= 0:
				menu[at] = c // their own words for it
			case len(menu) < maxCommands:
				menu = append(menu, c)
			}
		}
	}
	others := slices.DeleteFunc(slices.Clone(inScope), func(c command) bool { return slices.Contains(offered, c) })
	add(inDefault)
	add(others)
	return menu, slices.DeleteFunc(slices.Clone(menu), func(c command) bool { return slices.Contains(others, c) })
}

// offerMenus sets the menu of each scope, unless it is there. A failure is only logged: the next connection
// retries.
func (l *Listener) offerMenus(ctx context.Context, s *adapter.Shell) {
	for _, scope := range scopes() {
		if err := l.offerMenu(ctx, s.Daemon, scope); err != nil && ctx.Err() == nil {
			s.Log.Warn("offering commands failed; the next connection retries", "scope", scope, "err",
				s.Redact(err.Error()))
		}
	}
}

func (l *Listener) offerMenu(ctx context.Context, daemon, scope string) error {
	inDefault, err := l.commands(ctx, "default")
	if err != nil {
		return err
	}
	inScope, err := l.commands(ctx, scope)
	if err != nil {
		return err
	}
	key := "menu:" + scope
	kept, err := l.Store.DaemonCursor(ctx, daemon, key)
	if err != nil {
		return err
	}
	var offered []command
	_ = json.Unmarshal([]byte(kept), &offered) // nothing before the first time
	menu, own := menuOf(inScope, offered, inDefault)
	if slices.Equal(menu, inScope) && kept != "" {
		return nil
	}
	value, err := json.Marshal(menu)
	if err != nil {
		return err
	}
	// What is offered is kept together with what was before: should the call fail, or teled be killed here, both
	// are known as teled's own.
	if err := l.keepMenu(ctx, daemon, key, union(offered, own)); err != nil {
		return err
	}
	err = l.API.Call(ctx, "setMyCommands", telegramapi.Params{"commands": json.RawMessage(value),
		"scope": map[string]string{"type": scope}}, nil)
	if err != nil {
		return err
	}
	return l.keepMenu(ctx, daemon, key, own)
}

// union is all, and those of more that it lacks.
func union(all, more []command) []command {
	all = slices.Clone(all)
	for _, c := range more {
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

func (l *Listener) keepMenu(ctx context.Context, daemon, key string, menu []command) error {
	value, err := json.Marshal(menu)
	if err != nil {
		return err
	}
	return l.Store.Write(ctx, func(tx *store.Tx) error { return tx.PutCursor(daemon, key, string(value)) })
}

// commands are those of a scope for users of every language.
func (l *Listener) commands(ctx context.Context, scope string) (all []command, err error) {
	err = l.API.Call(ctx, "getMyCommands", telegramapi.Params{"scope": map[string]string{"type": scope}}, &all)
	return all, err
}
