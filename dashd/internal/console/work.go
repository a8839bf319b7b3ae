package console

import (
	"cmp"
	"context"

	"arizuko/dashd/internal/pages"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/why"
)

var (
	workStates = map[agentproto.Status]string{
		agentproto.StatusRunning: "works", agentproto.StatusIdle: "waits for something",
		agentproto.StatusRequiresAction: "waits for a user",
	}
	stepStates = map[agentproto.StepStatus]string{
		agentproto.StepPending: "to do", agentproto.StepInProgress: "under way", agentproto.StepCompleted: "done",
	}
	callStates = map[agentproto.ToolStatus]string{
		agentproto.ToolPending: "not begun", agentproto.ToolRunning: "under way", agentproto.ToolDone: "done",
		agentproto.ToolFailed: "failed",
	}
)

// addWork adds what the agent says of its work, and what it has used.
func (c *Console) addWork(ctx context.Context, page *pages.TurnPage, t *msg.Turn) error {
	used, err := c.Store.Usage(ctx, t.ID)
	if err != nil {
		return err
	}
	page.Used = why.Used(used)
	p, err := c.Store.Progress(ctx, t.ID)
	if err != nil || p == nil {
		return err
	}
	page.Work = &pages.Work{State: "worked", At: p.UpdatedAt, Text: cutText(p.Text, maxText)}
	if t.State == msg.TurnRunning {
		page.Work.State = workStates[p.State]
	}
	for _, step := range p.Plan {
		page.Work.Plan = append(page.Work.Plan, pages.WorkLine{Text: line(step.Content),
			State: stepStates[step.Status]})
	}
	for _, call := range p.Tools {
		page.Work.Calls = append(page.Work.Calls, pages.WorkLine{
			Text: line(cmp.Or(call.Title, call.ID)), State: callStates[call.Status],
			Bad: call.Status == agentproto.ToolFailed,
		})
	}
	return nil
}
