package gatedtest

import "arizuko/gated/internal/db"

// The statements of gated that tests of others begin with.
var (
	AddOperator         = db.AddOperator
	AddUsage            = db.AddUsage
	AnswerAsk           = db.AnswerAsk
	AnswerTurn          = db.AnswerTurn
	BindThread          = db.BindThread
	CancelReplies       = db.CancelReplies
	CancelTurn          = db.CancelTurn
	ClaimSystemMessages = db.ClaimSystemMessages
	ClosePoll           = db.ClosePoll
	CloseRun            = db.CloseRun
	ContinueStop        = db.ContinueStop
	Cursor              = db.Cursor
	DrainRun            = db.DrainRun
	EndRun              = db.EndRun
	EndWait             = db.EndWait
	ExpireAsk           = db.ExpireAsk
	FenceExpired        = db.FenceExpired
	FinishTurn          = db.FinishTurn
	FireReminder        = db.FireReminder
	FolderOwner         = db.FolderOwner
	FoldersEver         = db.FoldersEver
	GroupRows           = db.GroupRows
	LostRows            = db.LostRows
	NewMessages         = db.NewMessages
	PinGroup            = db.PinGroup
	PinTopic            = db.PinTopic
	Purge               = db.Purge
	PutAsk              = db.PutAsk
	PutBroadcast        = db.PutBroadcast
	PutBroadcastMessage = db.PutBroadcastMessage
	PutBroadcastPage    = db.PutBroadcastPage
	PutFork             = db.PutFork
	PutOperatorCode     = db.PutOperatorCode
	PutPoll             = db.PutPoll
	PutProgress         = db.PutProgress
	PutReminder         = db.PutReminder
	PutToolCall         = db.PutToolCall
	PutTurn             = db.PutTurn
	ReplaceContent      = db.ReplaceContent
	RequeueTurn         = db.RequeueTurn
	ReviveTurn          = db.ReviveTurn
	RunsOfGone          = db.RunsOfGone
	SetCursor           = db.SetCursor
	StartRun            = db.StartRun
	StopChat            = db.StopChat
	Stops               = db.Stops
	TakeTurn            = db.TakeTurn
	TurnSystemMessages  = db.TurnSystemMessages
	Undecided           = db.Undecided
	UndecidedChats      = db.UndecidedChats
	WantFiles           = db.WantFiles
)

type (
	Firing        = db.Firing
	OperatorCode  = db.OperatorCode
	Question      = db.Question
	Reply         = db.Reply
	Requeue       = db.Requeue
	Stop          = db.Stop
	SystemMessage = db.SystemMessage
)

const (
	HistoryMessages = db.HistoryMessages
)
