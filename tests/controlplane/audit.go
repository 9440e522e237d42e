// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"
)

// AuditMark is a position in the audit log.
type AuditMark struct{ offset int64 }

// AuditEvent is one request that the API server answered.
type AuditEvent struct {
	AuditID string
	// Stage is ResponseComplete, and ResponseStarted for a watch, which may never complete.
	Stage string
	Verb  string
	// User is the authenticated user, ImpersonatedUser the impersonated one, if any.
	User             string
	ImpersonatedUser string
	// Extra of the impersonated user.
	Extra       map[string][]string
	UserAgent   string
	APIGroup    string
	Resource    string
	Subresource string
	Namespace   string
	Name        string
	// Code is the HTTP status of the answer.
	Code       int
	RequestURI string
	// Time is when the request arrived.
	Time time.Time
}

// String describes the request in one line, for messages of tests.
func (e AuditEvent) String() string {
	user := e.User
	if e.ImpersonatedUser != "" {
		user += " as " + e.ImpersonatedUser
	}
	return fmt.Sprintf("%s %s %s: %d (%s)", user, e.Verb, e.RequestURI, e.Code, e.UserAgent)
}

// barrierURI begins the requests with which Audit makes sure that the log is complete.
const barrierURI = "/version?satchel-audit-barrier="

// AuditPath returns the file of the audit log; empty on an existing cluster.
func (cp *ControlPlane) AuditPath() string { return cp.audit }

// AuditMark returns the position after all requests that were answered before the call.
func (cp *ControlPlane) AuditMark() (AuditMark, error) {
	if cp.External() {
		return AuditMark{}, fmt.Errorf("reading the audit log: %w", ErrExternal)
	}
	cp.auditBarrier()
	info, err := os.Stat(cp.audit)
	if errors.Is(err, fs.ErrNotExist) {
		return AuditMark{}, nil
	}
	if err != nil {
		return AuditMark{}, fmt.Errorf("reading the audit log: %w", err)
	}
	offset, err := cp.lineStart(info.Size())
	if err != nil {
		return AuditMark{}, fmt.Errorf("reading the audit log: %w", err)
	}
	return AuditMark{offset: offset}, nil
}

// longestEntry is more than an entry of the log takes.
const longestEntry = 256 << 10

// lineStart is where the line begins that a position of the log lies in: it may be half written.
func (cp *ControlPlane) lineStart(position int64) (int64, error) {
	from := max(0, position-longestEntry)
	data, err := cp.auditSince(AuditMark{offset: from})
	before := data[:min(int64(len(data)), position-from)]
	return from + int64(bytes.LastIndexByte(before, '\n')) + 1, err
}

// Audit returns the requests answered since the mark, the zero mark meaning since the beginning, in the
// order of their answers. Each request is there once: a watch when it starts or is refused, all others
// when they complete. Health checks and the API server's own reads are not logged.
func (cp *ControlPlane) Audit(since AuditMark) ([]AuditEvent, error) {
	if cp.External() {
		return nil, fmt.Errorf("reading the audit log: %w", ErrExternal)
	}
	cp.auditBarrier()
	data, err := cp.auditSince(since)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	var events []AuditEvent
	for line := range bytes.Lines(data) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // being written
		}
		event, err := parseAudit(line)
		if err != nil {
			return nil, fmt.Errorf("reading the audit log %s: %w", cp.audit, err)
		}
		if event.counts() {
			events = append(events, event)
		}
	}
	return events, nil
}

func (cp *ControlPlane) auditSince(since AuditMark) ([]byte, error) {
	file, err := os.Open(cp.audit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(since.offset, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(file)
}

// counts tells the one entry for a request from the others, and from barriers.
func (e AuditEvent) counts() bool {
	completedWatch := e.Verb == "watch" && e.Stage == "ResponseComplete" && e.Code < http.StatusBadRequest
	return !completedWatch && !strings.HasPrefix(e.RequestURI, barrierURI)
}

// auditBarrier makes a request and waits until it is in the log: the API server logs after it answered,
// so the entry of an answer that a caller has seen already may be missing still. While the API server
// does not answer, nothing is missing.
func (cp *ControlPlane) auditBarrier() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	before, err := os.Stat(cp.audit)
	if err != nil || !cp.apiServer.Running() {
		return
	}
	uri := barrierURI + rand.Text()
	if cp.get(ctx, uri) != nil {
		return
	}
	_ = waitFor(ctx, func(context.Context) error {
		data, err := cp.auditSince(AuditMark{offset: before.Size()})
		if err == nil && !bytes.Contains(data, []byte(uri)) {
			err = errors.New("not in the log yet")
		}
		return err
	})
}

// get makes a request as the administrator and drops the answer.
func (cp *ControlPlane) get(ctx context.Context, uri string) error {
	client, err := cp.httpClient()
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, cp.rest.Host+uri, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close())
}

// auditEntry is the part of audit.k8s.io/v1 Event that is used.
type auditEntry struct {
	AuditID          string
	Stage            string
	RequestURI       string
	Verb             string
	User             struct{ Username string }
	ImpersonatedUser *struct {
		Username string
		Extra    map[string][]string
	}
	UserAgent      string
	ObjectRef      *struct{ Resource, Subresource, Namespace, Name, APIGroup string }
	ResponseStatus *struct{ Code int }
	Received       time.Time `json:"requestReceivedTimestamp"`
}

func parseAudit(line []byte) (AuditEvent, error) {
	var entry auditEntry
	if err := json.Unmarshal(line, &entry); err != nil {
		return AuditEvent{}, err
	}
	event := AuditEvent{
		AuditID: entry.AuditID, Stage: entry.Stage, Verb: entry.Verb, User: entry.User.Username,
		UserAgent: entry.UserAgent, RequestURI: entry.RequestURI, Time: entry.Received,
	}
	if entry.ImpersonatedUser != nil {
		event.ImpersonatedUser, event.Extra = entry.ImpersonatedUser.Username, entry.ImpersonatedUser.Extra
	}
	if ref := entry.ObjectRef; ref != nil {
		event.APIGroup, event.Resource, event.Subresource = ref.APIGroup, ref.Resource, ref.Subresource
		event.Namespace, event.Name = ref.Namespace, ref.Name
	}
	if entry.ResponseStatus != nil {
		event.Code = entry.ResponseStatus.Code
	}
	return event, nil
}
