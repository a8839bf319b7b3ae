package console

import (
	"context"
	"slices"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/dashd/internal/status"
	"arizuko/pkg/daemon"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

// maxStepRequests is how many requests the first steps show.
const maxStepRequests = 3

// steps are the tasks that remain until a chat of a platform was answered, nil once one was.
func (c *overviewPages) steps(ctx context.Context, daemons []status.Daemon) (*pages.Steps, error) {
	answered, err := c.wasAnswered(ctx)
	if err != nil || answered {
		return nil, err
	}
	pending, err := factrows.Requests(ctx, c.Store, factrows.RequestPending, maxStepRequests)
	if err != nil {
		return nil, err
	}
	s := &pages.Steps{}
	if s.Operators, err = c.operators(ctx); err != nil {
		return nil, err
	}
	for _, r := range pending {
		if !r.Noted() {
			s.Requests = append(s.Requests, r)
		}
	}
	find := func(name string) status.Daemon {
		if i := slices.IndexFunc(daemons, func(d status.Daemon) bool { return d.Name == name }); i >= 0 {
			return daemons[i]
		}
		return status.Daemon{Name: name, Connection: daemon.Stopped}
	}
	for _, name := range daemon.Core() {
		if row := find(name); name != "dashd" && !row.OK && row.Connection != daemon.Degraded {
			s.Daemons = append(s.Daemons, name)
		}
	}
	for _, p := range platforms() {
		row := find(p.Daemon)
		if i := slices.IndexFunc(daemons, func(d status.Daemon) bool { return d.OK && isOf(d.Name, p.Daemon) }); i >= 0 {
			row = daemons[i]
		}
		p.Token, p.Connected = daemon.TokenVariable(p.Daemon), row.OK
		if row.Connection == daemon.BadCredentials || row.Connection == daemon.Degraded {
			p.Problem = row.Detail
		}
		s.Platforms = append(s.Platforms, p)
	}
	return s, nil
}

// wasAnswered reports whether a chat of a platform was answered, now or since dashd was started.
func (c *overviewPages) wasAnswered(ctx context.Context) (bool, error) {
	if c.answered.Load() {
		return true, nil
	}
	var names []string
	for _, a := range daemon.Adapters() {
		names = append(names, a.Platform)
	}
	answered, err := rows.Answered(ctx, c.Store, names)
	if answered {
		c.answered.Store(true)
	}
	return answered, err
}

// isOf reports whether a daemon is an adapter of some account.
func isOf(name, adapter string) bool {
	base, _ := msg.SplitAccount(name)
	return base == adapter
}

// platforms are those that an instance can be connected to.
func platforms() []pages.Platform {
	return []pages.Platform{
		{Name: "Telegram", Daemon: "teled", Where: "from @BotFather, command /newbot",
			OperatorID: "write /chatid to the bot in a direct chat: its answer is your entry",
			Secrets:    []string{"TELEGRAM_BOT_TOKEN"}},
		{Name: "Discord", Daemon: "discd", Where: "from the developer portal, Bot, Reset Token",
			OperatorID: "discord:123, your user id (Settings, Advanced, Developer Mode; your profile, Copy User ID)",
			Secrets:    []string{"DISCORD_BOT_TOKEN"}},
		{Name: "Slack", Daemon: "slakd", Where: "and SLACK_APP_TOKEN, from your app's page",
			OperatorID: "slack:U0AB, your member id (your profile, Copy member ID)",
			Secrets:    []string{"SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"}},
	}
}
