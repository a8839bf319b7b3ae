package console

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"arizuko/dashd/internal/checks"
	"arizuko/dashd/internal/login"
	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
	"arizuko/pkg/facts"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// show shows the state of the instance.
func (c *overviewPages) show(r *http.Request) (*shown, error) {
	ctx := r.Context()
	f, err := c.Status.Instance(ctx)
	if err != nil {
		return nil, err
	}
	requests, err := factrows.CountRequests(ctx, c.Store)
	if err != nil {
		return nil, err
	}
	steps, err := c.steps(ctx, f.Daemons)
	if err != nil {
		return nil, err
	}
	minutes, err := c.countMinutes(ctx)
	if err != nil {
		return nil, err
	}
	var down []string
	for name, d := range f.Daemons {
		if d.Trouble(f.Now) != "" {
			down = append(down, name)
		}
	}
	slices.Sort(down)
	attention, err := c.findings.read(ctx, c.site, strings.Join(down, " "))
	if err != nil {
		return nil, err
	}
	failed, err := c.Store.Turns(ctx, store.TurnList{State: msg.TurnFailed, Limit: maxFailedShown})
	if err != nil {
		return nil, err
	}
	dayAgo := c.Now().Add(-24 * time.Hour).UnixMilli()
	failed = slices.DeleteFunc(failed, func(t *msg.Turn) bool { return t.EndedAt < dayAgo })
	titles, err := c.titles(ctx, append(turnChats(slices.Concat(f.Running, f.Queued, failed)),
		f.Inbound.ChatJID, f.Outbound.ChatJID))
	if err != nil {
		return nil, err
	}
	return &shown{data: pages.Overview{
		Facts: f, Titles: titles, Down: len(down), Pending: requests, Steps: steps, Minutes: minutes,
		Failed:    failed,
		Attention: attention[:min(len(attention), maxAttention)],
		Further:   attention[min(len(attention), maxAttention):],
	}}, nil
}

const (
	shownMinutes = 60
	maxMinutes   = 20_000 // messages that are counted for them
)

// countMinutes is the chart of the messages of the last hour.
func (c *overviewPages) countMinutes(ctx context.Context) (pages.Chart, error) {
	var cols pages.Columns
	for i := 1 - shownMinutes; i <= 0; i++ {
		at := c.Now().Local().Truncate(time.Minute).Add(time.Duration(i) * time.Minute)
		cols = append(cols, pages.NewColumn(at, at.Add(time.Minute), "15:04"))
	}
	return c.messageChart(ctx, cols, time.Minute, maxMinutes)
}

// maxStepRequests is how many requests the first steps show.
const maxStepRequests = 3

// steps are the tasks that remain until a chat of a platform was answered, nil once one was.
func (c *overviewPages) steps(ctx context.Context, daemons facts.Daemons) (*pages.Steps, error) {
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
	now := c.Now().UnixMilli()
	for _, name := range daemon.Core() {
		d := daemons[name]
		if name != "dashd" && d.Trouble(now) != "" && (d == nil || d.State() != daemon.Degraded) {
			s.Daemons = append(s.Daemons, name)
		}
	}
	for _, p := range platforms() {
		for name, d := range daemons {
			p.Connected = p.Connected || isOf(name, p.Daemon) && d.Trouble(now) == ""
		}
		if d := daemons[p.Daemon]; d != nil && !p.Connected &&
			(d.State() == daemon.BadCredentials || d.State() == daemon.Degraded) {
			p.Problem = d.Details()
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

const (
	findingsLife   = 10 * time.Second // how old findings may be that the overview shows
	findingsWait   = time.Second / 4  // how long it waits for newer ones than it has
	maxFindingsAge = time.Minute      // from which it says that they are old
	maxAttention   = 12               // how many of them are not folded
	maxFailedShown = 5
)

// findings are the problems that the rows show.
type findings struct{ latest[examined] }

// examined is the result of an examination.
type examined struct {
	at    time.Time // when it began
	found []facts.Fact
	down  string // as read was given it
}

// read returns the findings of the latest examination. It starts one and waits for it, but not for long: it may hang.
// down names the daemons that are not healthy: findings from a time when others were are stale.
func (f *findings) read(ctx context.Context, c *site, down string) ([]facts.Fact, error) {
	last, err := f.get(ctx, findingsWait, func(last *examined) bool {
		return down == last.down && c.Now().Sub(last.at) < findingsLife && !c.Now().Before(last.at)
	}, func(ctx context.Context) (*examined, error) {
		began := c.Now()
		found, err := c.Examine(ctx)
		return &examined{began, found, down}, err
	})
	if err != nil {
		return nil, err
	}
	if last == nil {
		last = &examined{}
	}
	if c.Now().Sub(last.at) > maxFindingsAge {
		old := facts.Fact{Text: "looking for problems takes long: this list is not up to date",
			Fix: "`dashd doctor` on the server shows why"}
		return append([]facts.Fact{old}, last.found...), nil
	}
	return last.found, nil
}

// restart restarts a daemon.
func (c *overviewPages) restart(r *http.Request) (next, notice string, err error) {
	name := chi.URLParam(r, "name")
	c.Log.Info("restarting a daemon", "daemon", name, "by", login.Sender(r.Context()))
	return "/", name + " is starting again.", c.Restart(r.Context(), name)
}

// connect says how a platform gets its token, which only the environment of its daemon has.
func (c *overviewPages) connect(r *http.Request) (*shown, error) {
	p, err := platform(r)
	if err != nil {
		return nil, err
	}
	daemons, err := c.Status.Daemons(r.Context())
	if err != nil {
		return nil, err
	}
	p.Connected = daemons[p.Daemon].Trouble(c.Now().UnixMilli()) == ""
	data := pages.Connect{Platform: p, Profiles: profiles(daemons, p.Daemon)}
	return &shown{title: "Connect " + p.Name, data: data}, nil
}

// platform is the one whose daemon the address names.
func platform(r *http.Request) (pages.Platform, error) {
	name := chi.URLParam(r, "daemon")
	all := platforms()
	i := slices.IndexFunc(all, func(p pages.Platform) bool { return p.Daemon == name })
	if i < 0 {
		return pages.Platform{}, apierr.New(apierr.NotFound, "no adapter is named %.40q", name)
	}
	return all[i], nil
}

// profiles are those of Compose with which an adapter starts beside those that run.
func profiles(daemons facts.Daemons, name string) string {
	var all []string
	for _, a := range daemon.Adapters() {
		if d := daemons[a.Name]; a.Name == name || d != nil && d.State() != daemon.Stopped {
			all = append(all, a.Platform)
		}
	}
	return strings.Join(all, ",")
}

// tryToken runs the check of an adapter with tokens from a form. They are given to that program alone, and are neither
// stored nor shown nor logged.
func (c *overviewPages) tryToken(r *http.Request) (next, notice string, err error) {
	p, err := platform(r)
	if err != nil {
		return "/", "", err
	}
	next = "/connect/" + p.Daemon
	environ := slices.DeleteFunc(daemon.Environ("", c.Environ),
		func(entry string) bool { return strings.HasPrefix(entry, "LOG_") })
	var tokens []string
	for _, variable := range p.Secrets {
		token := strings.TrimSpace(r.PostForm.Get(variable))
		if token == "" {
			return next, "", apierr.New(apierr.BadRequest, "Paste %s to try it.", variable)
		}
		if strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
			return next, "", apierr.New(apierr.BadRequest, "%s contains characters that no token has: copy it again.",
				variable)
		}
		tokens = append(tokens, token)
		environ = append(environ, variable+"="+token)
	}
	path := filepath.Join(c.Bin, p.Daemon)
	if _, err := os.Stat(path); err != nil {
		return next, "", apierr.New(apierr.Unavailable,
			"The program %s is not installed beside dashd: set the token as described below, and run `%[1]s check` "+
				"where %[1]s runs.", p.Daemon)
	}
	if !c.checking.TryLock() {
		return next, "", apierr.New(apierr.Conflict, "Another token is being tried: try again in a moment.")
	}
	defer c.checking.Unlock()
	result := checks.Run(r.Context(), path, environ)
	redact := func(text string) string {
		return c.Pages.Hide(pages.Printable(config.NewRedactor(tokens...).String(strings.TrimSpace(text))))
	}
	found := redact(result.Out)
	if result.Problem == "" && result.Code == 0 {
		found = strings.TrimSuffix(found, p.Daemon+": ok") // the words of a terminal
		return next, "It works. Now set it as described below.\n" + strings.TrimSpace(found), nil
	}
	failed := redact(cmp.Or(result.Problem, result.Errors))
	failed = strings.ReplaceAll("\n"+failed, "\n"+p.Daemon+": ", "\n") // it begins each line
	return next, "", apierr.New(apierr.BadRequest, "It does not work:%s\n%s", failed, found)
}
