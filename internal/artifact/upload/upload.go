// SPDX-License-Identifier: Apache-2.0

// Package upload brings the files of a folder to the source controller: what both ends have to agree about, the server
// without anything of Kubernetes, the client, and the packing of a folder.
//
// Content is named by the digest of its canonical uncompressed tar. It goes over the wire as that tar, compressed with gzip,
// and is stored when it has the digest: sending it again changes nothing, and half of it is nothing.
package upload

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
)

const (
	// Audience is that of the tokens that uploads need. They are good for nothing else.
	Audience = "satchel.dev/upload"
	// Port is where the source controller listens for uploads without a flag.
	Port = 9091
)

// Target is what is uploaded, and for which BundleSource.
type Target struct {
	// Namespace and Name are those of the BundleSource.
	Namespace, Name string
	// Digest is sha256: and the hash of the canonical uncompressed tar.
	Digest string
}

// path is where a target is uploaded to.
func (t Target) path() string { return "/upload/" + t.Namespace + "/" + t.Name + "/" + t.Digest }

// String names the BundleSource.
func (t Target) String() string { return "bundlesource " + t.Namespace + "/" + t.Name }

// paths matches what Target.path writes, in its one spelling.
var paths = regexp.MustCompile(`^/upload/([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)/([a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?)/(sha256:[a-f0-9]{64})$`)

// targetOf is the target that a path names.
func targetOf(path string) (Target, bool) {
	parts := paths.FindStringSubmatch(path)
	if parts == nil {
		return Target{}, false
	}
	return Target{Namespace: parts[1], Name: parts[2], Digest: parts[3]}, true
}

// Reason says in one word how an upload ended. Both ends and the metrics use it.
type Reason string

const (
	// Stored means that the content came, and is stored.
	Stored Reason = "Stored"
	// Present means that the content is stored already.
	Present Reason = "Present"
	// Absent means that the content is not stored yet.
	Absent Reason = "Absent"
	// BadRequest means that this is no upload.
	BadRequest Reason = "BadRequest"
	// Unauthenticated means that the token is missing or not good for uploads.
	Unauthenticated Reason = "Unauthenticated"
	// Forbidden means that the user of the token may not upload for this BundleSource.
	Forbidden Reason = "Forbidden"
	// NotFound means that there is no such BundleSource.
	NotFound Reason = "NotFound"
	// NotNamed means that the BundleSource does not name this content.
	NotNamed Reason = "NotNamed"
	// Elsewhere means that another instance of the controller reconciles the BundleSource.
	Elsewhere Reason = "Elsewhere"
	// Standby means that another process of the controller leads.
	Standby Reason = "Standby"
	// Busy means that enough uploads are under way; Error.RetryAfter says when to try again.
	Busy Reason = "Busy"
	// CutOff means that the content did not come to its end.
	CutOff Reason = "CutOff"
	// TooSlow means that the content came too slowly.
	TooSlow Reason = "TooSlow"
	// LimitExceeded means that the content is larger than the controller allows.
	LimitExceeded Reason = "LimitExceeded"
	// InvalidContent means that the content is no archive, damaged or unsafe.
	InvalidContent Reason = "InvalidContent"
	// DigestMismatch means that the content is another one than was announced.
	DigestMismatch Reason = "DigestMismatch"
	// QuotaExceeded means that the namespace has no room left.
	QuotaExceeded Reason = "QuotaExceeded"
	// StorageFailed means that the controller's volume is the reason.
	StorageFailed Reason = "StorageFailed"
	// Unavailable means that the controller cannot decide at present.
	Unavailable Reason = "Unavailable"
)

// statuses are the HTTP statuses of the reasons.
var statuses = map[Reason]int{
	Stored:          http.StatusCreated,
	Present:         http.StatusOK,
	Absent:          http.StatusNotFound,
	BadRequest:      http.StatusBadRequest,
	Unauthenticated: http.StatusUnauthorized,
	Forbidden:       http.StatusForbidden,
	NotFound:        http.StatusNotFound,
	NotNamed:        http.StatusConflict,
	Elsewhere:       http.StatusMisdirectedRequest,
	Busy:            http.StatusTooManyRequests,
	CutOff:          http.StatusBadRequest,
	TooSlow:         http.StatusRequestTimeout,
	LimitExceeded:   http.StatusRequestEntityTooLarge,
	InvalidContent:  http.StatusUnprocessableEntity,
	DigestMismatch:  http.StatusUnprocessableEntity,
	QuotaExceeded:   http.StatusInsufficientStorage,
	StorageFailed:   http.StatusInsufficientStorage,
	Unavailable:     http.StatusServiceUnavailable,
	Standby:         http.StatusServiceUnavailable,
}

// Error is how an upload failed, at both ends.
type Error struct {
	// Reason is the class of the failure.
	Reason Reason
	// Message says what happened, to which object, and what to do.
	Message string
	// RetryAfter is the time after which a retry makes sense; 0 where it does not, or where that is unknown.
	RetryAfter time.Duration
}

// Errorf returns an Error with a formatted message.
func Errorf(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// answer is the body of every answer.
type answer struct {
	Reason  Reason `json:"reason"`
	Message string `json:"message,omitempty"`
}

// bearerToken is the token of the one Authorization header that a request may have.
func bearerToken(header http.Header) (string, bool) {
	values := header.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, found := strings.Cut(values[0], " ")
	return token, found && strings.EqualFold(scheme, "Bearer") && token != "" && len(token) <= maxTokenBytes
}

// maxTokenBytes bounds a token; those of ServiceAccounts have about 1 KiB.
const maxTokenBytes = 8 << 10
