package tools

import (
	"cmp"
	"context"
	"time"

	"arizuko/gated/internal/contextobjects"
	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/timed/reminders"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// reminderOut is a reminder as an agent sees it.
type reminderOut struct {
	ID       int64  `json:"id" jsonschema:"its id, for reminder_update and reminder_cancel"`
	Kind     string `json:"kind" jsonschema:"text or prompt"`
	Body     string `json:"body" jsonschema:"the text that is sent, or the prompt"`
	ChatJID  string `json:"chat_jid" jsonschema:"the chat"`
	ThreadID string `json:"thread_id,omitempty" jsonschema:"the thread into which it is sent; left out: the chat outside of threads"`
	Topic    string `json:"topic" jsonschema:"the topic in which a prompt runs"`
	DueAt    string `json:"due_at,omitempty" jsonschema:"when it fires, if it fires once"`
	Cron     string `json:"cron,omitempty" jsonschema:"when it fires, if it repeats"`
	TimeZone string `json:"time_zone" jsonschema:"its time zone"`
	Missed   string `json:"missed" jsonschema:"one or skip"`
	State    string `json:"state" jsonschema:"active, done or cancelled"`
	NextAt   string `json:"next_at,omitempty" jsonschema:"when it fires next, in its time zone"`
	Error    string `json:"error,omitempty" jsonschema:"why arizuko cancelled it"`
}

func newReminderOut(r *msg.Reminder) reminderOut {
	zone, err := reminders.ParseZone(r.TimeZone)
	if err != nil {
		zone = time.UTC
	}
	return reminderOut{
		ID: r.ID, Kind: string(r.Kind), Body: r.Body, ChatJID: r.ChatJID, ThreadID: r.ThreadID, Topic: r.Topic,
		DueAt: timeText(r.DueAt, zone), Cron: r.Cron,
		TimeZone: reminders.ZoneText(r.TimeZone, time.UnixMilli(cmp.Or(r.NextSlot, r.DueAt, r.CreatedAt)).In(zone)),
		Missed:   string(r.Missed), State: string(r.State), NextAt: timeText(r.NextSlot, zone), Error: r.Error,
	}
}

// reminderBounds are those of the fields that creating and updating share.
func reminderBounds() map[string]Bound {
	const maxTime, maxCron, maxZone = 40, 200, 64
	return map[string]Bound{
		"kind": OneOf(msg.ReminderText, msg.ReminderPrompt), "body": Text(1, reminders.MaxBody),
		"due_at": Text(1, maxTime),
		"cron":   Text(1, maxCron), "time_zone": Text(1, maxZone),
		"missed": OneOf(msg.MissedOne, msg.MissedSkip), "topic": Text(0, maxTopic),
	}
}

// ownReminder returns an active reminder of a group within the caller's reach, or a refusal.
func (c *Caller) ownReminder(ctx context.Context, r store.Reader, id int64) (*msg.Reminder, error) {
	stored, err := factrows.Reminder(ctx, r, id)
	if err != nil {
		return nil, err
	}
	shown := false
	if stored != nil {
		if shown, err = c.shows(ctx, r, stored.Folder, stored.ChatJID); err != nil {
			return nil, err
		}
	}
	if !shown {
		return nil, refuse("no reminder %d is in reach: take an id from reminder_list. Those of a direct message are "+
			"changed there", id)
	}
	if stored.State != msg.ReminderActive {
		return nil, refuse("reminder %d is %s: make a new one with reminder_create", id, stored.State)
	}
	return stored, nil
}

// reminderTopic returns the topic of a reminder: that of the turn that makes it, or one of the chat.
func reminderTopic(t *msg.Turn, topic *string) (string, error) {
	if topic == nil {
		return t.Topic, nil
	}
	if *topic != "" && *topic != t.Topic && !msg.ValidTopic(*topic) {
		return "", refuse("topic %.80q is not valid: write %s", *topic, msg.TopicRule)
	}
	return *topic, nil
}

// activateReminder makes a reminder of the caller's chat an active context object.
func (c *Caller) activateReminder(ctx context.Context, tx *store.Tx, event contextobjects.Event,
	r *msg.Reminder) error {
	if r.ChatJID != c.Turn.ChatJID {
		return nil
	}
	return c.activateObject(ctx, tx, event, contextobjects.Object{
		Kind: msg.ContextReminder, ID: msg.ContextObjectID(msg.ContextReminder, r.ID),
		Label: r.Body, CreatedBy: r.CreatedBy, CreatedByBot: true, DueAt: r.NextSlot,
	})
}

// errReminderDepth ends chains of prompts that plan prompts.
var errReminderDepth = refuse("this request has been passed on %d levels deep, reminders included, which is the "+
	"limit: make one reminder that repeats by cron, or tell the user what is left undone", msg.MaxDelegationDepth)

// planned ends a call of plan with its error: the scheduler looks again, or the chat gets the notice that a chain has
// ended.
func (c *Caller) planned(ctx context.Context, err error) error {
	if err == nil {
		c.Services.Reminders.Changed()
	}
	return c.noticeLimit(ctx, err)
}

// plan changes a reminder as the caller asks, or returns a refusal. From then on the sender of the caller's turn pays
// for it.
func (c *Caller) plan(ctx context.Context, tx *store.Tx, r *msg.Reminder, spec reminders.Spec) error {
	was := *r
	if err := spec.Apply(r, c.Services.Zone, c.Services.Now()); err != nil {
		return refuse("%v", err)
	}
	r.UpdatedBy, r.RootTurnID, r.Depth = c.origin.Sender, c.Turn.Root(), c.Turn.Depth
	if r.Kind != msg.ReminderPrompt {
		return nil
	}
	if r.Depth >= msg.MaxDelegationDepth {
		return errReminderDepth
	}
	if r.Cron != "" || r.NextSlot == was.NextSlot && r.Kind == was.Kind {
		return nil
	}
	members, err := c.members(ctx, tx.Reader, r.Folder)
	if err != nil {
		return err
	}
	var planned []int64
	if c.origin.Pays(members) { // where turns have no limit, these have none
		if planned, err = rows.PlannedPrompts(ctx, tx.Reader, r.ChatJID, r.ID); err != nil {
			return err
		}
	}
	earliest := int64(0)
	if r.Depth > 0 || c.Turn.Kind == msg.Broadcast { // it might plan itself without a pause
		earliest = c.Services.now() + reminders.MinDistance.Milliseconds()
	}
	if free := reminders.FreeSlot(r.NextSlot, earliest, planned); free != r.NextSlot {
		zone, err := reminders.ParseZone(r.TimeZone)
		if err != nil {
			return err
		}
		return refuse("prompts that fire once are a minute apart in a chat, and come a minute after a "+
			"prompt that makes them: the first free time is %s",
			time.UnixMilli(free).In(zone).Format(time.RFC3339))
	}
	return nil
}

type reminderCreateIn struct {
	Kind     string  `json:"kind" jsonschema:"text: the body is sent to the chat as it is; prompt: the body is a task for yourself, whose answer is sent"`
	Body     string  `json:"body" jsonschema:"the text in markdown, or the task, with all that you need to know then"`
	DueAt    string  `json:"due_at,omitempty" jsonschema:"for a reminder that fires once: RFC 3339 with an offset, as 2026-11-23T09:00:00+01:00, or without one for the local time of time_zone; prompts of a chat are a minute apart at least"`
	Cron     string  `json:"cron,omitempty" jsonschema:"for one that repeats: minute hour day-of-month month day-of-week, as 30 9 * * mon-fri; at most every 10 minutes"`
	TimeZone string  `json:"time_zone,omitempty" jsonschema:"an IANA name such as Europe/Berlin; left out: that of this instance"`
	Missed   string  `json:"missed,omitempty" jsonschema:"if times pass while arizuko is down: one (default): the last one fires late; skip: none does"`
	Topic    *string `json:"topic,omitempty" jsonschema:"the topic in which a prompt runs; left out: the current one"`
}

func reminderCreate() Tool {
	return define(Tool{
		Name: "reminder_create", Title: "Make a reminder", Kind: Adds,
		Description: "Makes a reminder in this chat: a text to send, or a prompt for yourself, once at due_at " +
			"or regularly by cron. Use it when a user wants to be reminded, or wants something done later " +
			"or regularly. It is sent to the thread or forum topic where you make it, or else to the top level " +
			"of the chat; in Slack channels always to the top level. Tell the user when it fires: next_at.",
		Bounds: reminderBounds(),
	}, func(ctx context.Context, c *Caller, in reminderCreateIn) (out reminderOut, err error) {
		topic, err := reminderTopic(c.Turn, in.Topic)
		if err != nil {
			return out, err
		}
		r := msg.Reminder{Folder: c.Turn.Folder, ChatJID: c.Turn.ChatJID, Topic: topic, Missed: msg.MissedOne}
		spec := reminders.Spec{Kind: in.Kind, Body: c.markdown(in.Body), DueAt: in.DueAt, Cron: in.Cron,
			TimeZone: in.TimeZone, Missed: in.Missed}
		out, err = once(ctx, c, in, func(tx *store.Tx) (reminderOut, error) {
			return c.createReminder(ctx, tx, r, spec)
		})
		return out, c.planned(ctx, err)
	})
}

// createReminder stores a reminder of the caller.
func (c *Caller) createReminder(ctx context.Context, tx *store.Tx, r msg.Reminder,
	spec reminders.Spec) (out reminderOut, err error) {
	if err := c.checkReaders(); err != nil {
		return out, err
	}
	kind, err := rows.ChatKind(ctx, tx.Reader, r.ChatJID)
	if err != nil {
		return out, err
	}
	r.ThreadID = msg.ReminderThread(r.ChatJID, kind, c.Turn.ThreadID)
	if err := checkTakes(ctx, tx.Reader, r.ChatJID, r.ThreadID,
		"ask the user to say it in a post, where the reminder is sent then"); err != nil {
		return out, err
	}
	may, err := c.Services.Chats.MayWrite(ctx, tx.Reader, r.ChatJID, r.Folder)
	if err != nil {
		return out, err
	}
	if !may {
		return out, refuse("group %s does not answer this chat itself: tell the user to ask for it without @ "+
			"and the name of a group, or the group that delegated to you", c.Turn.Folder)
	}
	if err := c.plan(ctx, tx, &r, spec); err != nil {
		return out, err
	}
	ofFolder, ofChat, err := rows.CountReminders(ctx, tx.Reader, r.Folder, r.ChatJID)
	if err != nil {
		return out, err
	}
	if ofFolder >= reminders.MaxPerFolder || ofChat >= reminders.MaxPerChat {
		return out, refuse("there are %d reminders for this chat (at most %d) and %d of this group (at most %d): "+
			"cancel some with reminder_cancel first",
			ofChat, reminders.MaxPerChat, ofFolder, reminders.MaxPerFolder)
	}
	r.CreatedBy, r.CreatedAt, r.UpdatedAt = r.UpdatedBy, c.Services.now(), c.Services.now()
	if err := rows.PutReminder(tx, &r); err != nil {
		return out, err
	}
	return newReminderOut(&r), c.activateReminder(ctx, tx, contextobjects.ReminderCreated, &r)
}

// maxActivated is how many of a list's entries become active context objects, which a chat has few of.
const maxActivated = 20

type reminderListIn struct {
	State msg.ReminderState `json:"state,omitempty" jsonschema:"active (the default), done or cancelled"`
	All   bool              `json:"all,omitempty" jsonschema:"those of your group in all its chats; those in direct messages are shown only there, unless the group is configured to show them"`
	After int64             `json:"after,omitempty" jsonschema:"only those with a higher id: last of the page before"`
}

type reminderListOut struct {
	Reminders []reminderOut `json:"reminders" jsonschema:"by id"`
	More      bool          `json:"more" jsonschema:"there are further ones: ask again with after"`
	Last      int64         `json:"last,omitempty" jsonschema:"the value of after for the next page"`
}

func reminderList() Tool {
	return define(Tool{
		Name: "reminder_list", Title: "List reminders", Kind: Lists,
		Description: "Lists the reminders of your group for this chat, or for all its chats. " +
			"Use it before you change or cancel one, and when a user asks what is planned.",
		Bounds: map[string]Bound{
			"state": OneOf(msg.ReminderActive, msg.ReminderDone, msg.ReminderCancelled),
			"after": Number(0, maxID),
		},
	}, func(ctx context.Context, c *Caller, in reminderListIn) (out reminderListOut, err error) {
		const pageRows = 50
		state := cmp.Or(in.State, msg.ReminderActive)
		list := factrows.ReminderList{ChatJID: c.Turn.ChatJID, State: state, After: in.After, Limit: pageRows + 1}
		if in.All {
			list.ChatJID, list.Folder = "", c.Turn.Folder
		}
		all, err := factrows.Reminders(ctx, c.Services.Store.Reader, list)
		if err != nil {
			return out, err
		}
		if out.More = len(all) > pageRows; out.More {
			all = all[:pageRows]
			out.Last = all[pageRows-1].ID
		}
		out.Reminders = []reminderOut{}
		var active []*msg.Reminder
		for _, r := range all {
			shown, err := c.shows(ctx, c.Services.Store.Reader, r.Folder, r.ChatJID)
			if err != nil {
				return out, err
			}
			if !shown { // of a group out of reach, or of a chat that the run may not read
				continue
			}
			out.Reminders = append(out.Reminders, newReminderOut(r))
			if state == msg.ReminderActive && len(active) < maxActivated {
				active = append(active, r)
			}
		}
		return out, activateListed(ctx, c, active, func(tx *store.Tx, r *msg.Reminder) error {
			return c.activateReminder(ctx, tx, contextobjects.ReminderListed, r)
		})
	})
}

type reminderUpdateIn struct {
	ID       int64   `json:"id" jsonschema:"the reminder's id"`
	Kind     string  `json:"kind,omitempty" jsonschema:"text or prompt; left out: as it is, and so for all that follow"`
	Body     string  `json:"body,omitempty" jsonschema:"the text, or the task"`
	DueAt    string  `json:"due_at,omitempty" jsonschema:"when it fires, once; it does not repeat then"`
	Cron     string  `json:"cron,omitempty" jsonschema:"when it fires, again and again"`
	TimeZone string  `json:"time_zone,omitempty" jsonschema:"of cron, and of a due_at without an offset"`
	Missed   string  `json:"missed,omitempty" jsonschema:"one or skip"`
	Topic    *string `json:"topic,omitempty" jsonschema:"the topic in which a prompt runs"`
}

func reminderUpdate() Tool {
	bounds := reminderBounds()
	bounds["id"] = Number(1, maxID)
	return define(Tool{
		Name: "reminder_update", Title: "Change a reminder", Kind: Sets,
		Description: "Changes an active reminder of your group: what it says, or when it fires. " +
			"Use it when a user wants to move or reword one; take the id from reminder_list.",
		Bounds: bounds,
	}, func(ctx context.Context, c *Caller, in reminderUpdateIn) (out reminderOut, err error) {
		spec := reminders.Spec{Kind: in.Kind, Body: c.markdown(in.Body), DueAt: in.DueAt, Cron: in.Cron,
			TimeZone: in.TimeZone, Missed: in.Missed}
		out, err = once(ctx, c, in, func(tx *store.Tx) (out reminderOut, err error) {
			r, err := c.ownReminder(ctx, tx.Reader, in.ID)
			if err != nil {
				return out, err
			}
			was := *r
			c.replaced = &was
			if in.Topic != nil {
				if r.Topic, err = reminderTopic(c.Turn, in.Topic); err != nil {
					return out, err
				}
			}
			if err := c.plan(ctx, tx, r, spec); err != nil {
				return out, err
			}
			r.UpdatedAt = c.Services.now()
			if err := rows.UpdateReminder(tx, r); err != nil {
				return out, err
			}
			return newReminderOut(r), c.activateReminder(ctx, tx, contextobjects.ReminderUpdated, r)
		})
		return out, c.planned(ctx, err)
	})
}

type reminderCancelIn struct {
	ID int64 `json:"id" jsonschema:"the reminder's id"`
}

func reminderCancel() Tool {
	return define(Tool{
		Name: "reminder_cancel", Title: "Cancel a reminder", Kind: Removes,
		Description: "Ends an active reminder of your group: it does not fire any more. " +
			"Use it when a user wants no more reminders of something; take the id from reminder_list.",
		Bounds: map[string]Bound{"id": Number(1, maxID)},
	}, func(ctx context.Context, c *Caller, in reminderCancelIn) (out reminderOut, err error) {
		return once(ctx, c, in, func(tx *store.Tx) (out reminderOut, err error) {
			r, err := c.ownReminder(ctx, tx.Reader, in.ID)
			if err != nil {
				return out, err
			}
			was := *r
			c.replaced = &was
			r.State, r.NextSlot = msg.ReminderCancelled, 0
			now := c.Services.now()
			if err := rows.EndReminder(tx, r.ID, msg.ReminderCancelled, c.origin.Sender, "", now); err != nil {
				return out, err
			}
			return newReminderOut(r), c.Services.Objects.SetReminderDue(tx, r.ChatJID, r.ID, 0, now)
		})
	})
}
