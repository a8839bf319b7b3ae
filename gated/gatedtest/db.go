package gatedtest

import "arizuko/gated/internal/rows"

// The statements of gated that tests of others begin with.
var (
	AddOperator         = rows.AddOperator
	AddUsage            = rows.AddUsage
	AnswerAsk           = rows.AnswerAsk
	BindThread          = rows.BindThread
	CancelReplies       = rows.CancelReplies
	CancelTurn          = rows.CancelTurn
	ClaimSystemMessages = rows.ClaimSystemMessages
	ClosePoll           = rows.ClosePoll
	CloseRun            = rows.CloseRun
	ContinueStop        = rows.ContinueStop
	DrainRun            = rows.DrainRun
	EndRun              = rows.EndRun
	EndWait             = rows.EndWait
	ExpireAsk           = rows.ExpireAsk
	FenceExpired        = rows.FenceExpired
	FinishTurn          = rows.FinishTurn
	FireReminder        = rows.FireReminder
	FolderOwner         = rows.FolderOwner
	FoldersEver         = rows.FoldersEver
	GroupRows           = rows.GroupRows
	LostRows            = rows.LostRows
	NewMessages         = rows.NewMessages
	PinGroup            = rows.PinGroup
	PinTopic            = rows.PinTopic
	Purge               = rows.Purge
	PutAsk              = rows.PutAsk
	PutBroadcast        = rows.PutBroadcast
	PutBroadcastMessage = rows.PutBroadcastMessage
	PutBroadcastPage    = rows.PutBroadcastPage
	PutFork             = rows.PutFork
	PutOperatorCode     = rows.PutOperatorCode
	PutPoll             = rows.PutPoll
	PutProgress         = rows.PutProgress
	PutReminder         = rows.PutReminder
	PutToolCall         = rows.PutToolCall
	PutTurn             = rows.PutTurn
	ReplaceContent      = rows.ReplaceContent
	RequeueTurn         = rows.RequeueTurn
	ReviveTurn          = rows.ReviveTurn
	RunsOfGone          = rows.RunsOfGone
	StartRun            = rows.StartRun
	StopChat            = rows.StopChat
	Stops               = rows.Stops
	TakeTurn            = rows.TakeTurn
	TurnSystemMessages  = rows.TurnSystemMessages
	Undecided           = rows.Undecided
	UndecidedChats      = rows.UndecidedChats
	WantFiles           = rows.WantFiles
)

type (
	Broadcast     = rows.Broadcast
	Firing        = rows.Firing
	OperatorCode  = rows.OperatorCode
	Question      = rows.Question
	Reply         = rows.Reply
	Requeue       = rows.Requeue
	Stop          = rows.Stop
	SystemMessage = rows.SystemMessage
)

const (
	HistoryMessages = rows.HistoryMessages
)
