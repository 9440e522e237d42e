// SPDX-License-Identifier: Apache-2.0

package objecterror

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

const maxMessage = 1000 // characters of one object's message

// Error describes a failure of one object, fit for status and
// logs: of a Secret it names fields, never values.
type Error struct {
	inventory.ID
	Reason  metav1.StatusReason // of the API server; empty when it did not answer
	Message string
	// Uncalled is the admission webhook that refused by being unreachable; mostly empty.
	Uncalled string
}

// Error implements error.
func (e *Error) Error() string { return e.ID.String() + ": " + e.Message }

// Transient tells that the same request may succeed later without a
// change: the API server was busy, restarting or unreachable.
func (e *Error) Transient() bool {
	switch e.Reason {
	case metav1.StatusReasonUnknown, metav1.StatusReasonInternalError, metav1.StatusReasonServerTimeout,
		metav1.StatusReasonServiceUnavailable, metav1.StatusReasonTimeout, metav1.StatusReasonTooManyRequests:
		return true
	}
	return false
}

// Of describes an API server's error. The original is not kept,
// for it may quote the values of a Secret.
func Of(id inventory.ID, err error) *Error {
	message := err.Error()
	if id.Group == "" && id.Kind == "Secret" {
		message = withoutValues(err)
	}
	if fields := Immutable(err); len(fields) > 0 {
		message = Unchangeable(id, fields)
	}
	reason := apierrors.ReasonForError(err)
	if Mistyped(id, err) {
		reason, message = metav1.StatusReasonInvalid, mistyped(message)
	}
	return &Error{ID: id, Reason: reason, Message: OneLine(message), Uncalled: uncalled(err)}
}

// withoutValues describes an error by its reason and the fields it is about.
// Messages of the API server quote what they refuse.
func withoutValues(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "the API server did not answer"
	}
	reason := status.Status().Reason
	if reason == metav1.StatusReasonForbidden {
		return err.Error() // about permissions, and of admission; both contain only names
	}
	words := "refused by the API server (" + string(reason) + ")"
	if details := status.Status().Details; details != nil {
		var fields []string
		for _, cause := range details.Causes {
			fields = append(fields, fmt.Sprintf("%s %s", cause.Field, cause.Type))
		}
		slices.Sort(fields)
		if len(fields) > 0 {
			words += ": " + strings.Join(fields, ", ")
		}
	}
	if reason == metav1.StatusReasonBadRequest || reason == metav1.StatusReasonInternalError {
		words += ": check that every value of data is base64"
	}
	return words
}

// OneLine keeps a message short and on one line.
func OneLine(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "..."
	}
	return message
}

// Join joins errors sorted, and only so many of them as help.
func Join(errs []error) error {
	const enough = 5
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if len(errs) > enough {
		errs = append(errs[:enough:enough], fmt.Errorf("and %d more", len(errs)-enough))
	}
	return errors.Join(errs...)
}
