package services

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// hooks shows the webhooks of the group, or adds one whose answers go to this chat. Its secret is not for chats.
func (c *choice) hooks(ctx context.Context) (string, error) {
	kind, name, ok := strings.Cut(c.wanted, " ")
	if !ok {
		return c.listHooks(), nil
	}
	add := routeapi.NewHook{Folder: c.folder, Name: strings.TrimSpace(name),
		Hook: groupconfig.Hook{Kind: groupconfig.HookKind(strings.ToLower(kind)), To: c.chat, Thread: c.thread}}
	var added routeapi.HookAdded
	if err := Do(httpx.WithBy(ctx, c.by), c.Routd, http.MethodPost, routeapi.HooksPath, add, &added); err != nil {
		return "", err
	}
	return fmt.Sprintf("The webhook %s is there, and its answers come here. Its address: %s\nIts secret isn't shown "+
		"in chats: make one on its page of the dashboard, or with `routd hooks rotate %s`.", add.Name, added.URL,
		added.ID), nil
}

func (c *choice) listHooks() string {
	var b strings.Builder
	b.WriteString("This group has these webhooks:")
	for _, name := range slices.Sorted(maps.Keys(c.own.Hooks)) {
		fmt.Fprintf(&b, "\n- %s: %s", name, c.own.Hooks[name].Kind)
		if c.own.Hooks[name].Off {
			b.WriteString(", off")
		}
	}
	if len(c.own.Hooks) == 0 {
		b.Reset()
		b.WriteString("This group has no webhooks.")
	}
	fmt.Fprintf(&b, "\nOperators add one with %s; the kinds are %s.",
		msg.CommandIn(c.chat, msg.CommandHooks+" KIND NAME"), strings.Trim(fmt.Sprint(groupconfig.HookKinds()), "[]"))
	return b.String()
}
