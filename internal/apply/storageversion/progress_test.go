// SPDX-License-Identifier: Apache-2.0

package storageversion

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// How long a failing migration waits.
func TestProgressFail(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	tests := map[string]struct {
		reason   string
		progress progress
		until    time.Time
		over     bool
	}{
		"first":      {"nothing failed before", progress{}, now.Add(10 * time.Minute), false},
		"seconds":    {"the Pod of an operator restarts", progress{failing: ago(3 * time.Second), tried: ago(3 * time.Second)}, now.Add(10*time.Minute - 3*time.Second), false},
		"almost":     {"there is a second left", progress{failing: ago(10*time.Minute - time.Second), tried: ago(time.Minute)}, now.Add(time.Second), false},
		"long":       {"the patience is over", progress{failing: ago(10 * time.Minute), tried: ago(time.Second)}, now, true},
		"long ago":   {"that was another attempt", progress{failing: ago(25 * time.Hour), tried: ago(24 * time.Hour)}, now.Add(10 * time.Minute), false},
		"clock back": {"the time to come says nothing", progress{failing: ago(-time.Hour), tried: ago(-time.Hour)}, now.Add(10 * time.Minute), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := tt.progress
			until, over := p.fail(now, DefaultPatience)
			if !until.Equal(tt.until) || over != tt.over || !p.tried.Equal(now) {
				t.Errorf("%s: until %s, over %t, tried %s", tt.reason, until, over, p.tried)
			}
		})
	}
}

// Progress resets patience.
func TestProgressResetsPatience(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := progress{}
	p.fail(now, time.Minute)
	p.wrote(types.NamespacedName{Name: "a"})
	if until, over := p.fail(now.Add(time.Hour/2), time.Minute); over || !until.Equal(now.Add(time.Hour/2+time.Minute)) {
		t.Errorf("until %s, over %t", until, over)
	}
}

func TestProgressNamesRefused(t *testing.T) {
	p := progress{}
	for i := range mostRefused + 7 {
		p.refuse(types.NamespacedName{Namespace: "shop", Name: fmt.Sprint("w", i)}, fmt.Errorf("cause %d", i))
	}
	if words := p.refusals(); words != "107 of its resources (shop/w0, shop/w1, shop/w2, ...)" || p.why != "cause 0" || len(p.refused) != mostRefused {
		t.Errorf("got %q, %q, %d remembered", words, p.why, len(p.refused))
	}
	p = progress{}
	p.refuse(types.NamespacedName{Name: "w0"}, errors.New("cause"))
	if words := p.refusals(); words != "1 of its resources (w0)" {
		t.Errorf("of the cluster: %q", words)
	}
}

// The remembered progress is for one CRD and owner, and only while the
// spec of the CRD does not change.
func TestMigrationsRemember(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := Migrations{Now: func() time.Time { return now }}
	key := migrationKey{owner: inventory.Owner{Namespace: "a", Name: "app"}, name: "widgets.example.org", uid: "u"}
	last := types.NamespacedName{Namespace: "shop", Name: "w1"}
	m.keep(key, progress{generation: 3, last: last, ended: true, failing: now, tried: now})
	if p := m.of(key, 3); p.last != last || !p.ended {
		t.Errorf("got %+v", p)
	}
	if p := m.of(key, 4); p.last.Name != "" || p.ended || !p.failing.Equal(now) || p.generation != 4 {
		t.Errorf("of a CRD that changed since: %+v", p)
	}
	for name, other := range map[string]migrationKey{
		"other owner": {owner: inventory.Owner{Namespace: "b", Name: "app"}, name: key.name, uid: key.uid},
		"other name":  {owner: key.owner, name: "gadgets.example.org", uid: key.uid},
		"other CRD":   {owner: key.owner, name: key.name, uid: "v"},
	} {
		if p := m.of(other, 3); p.last.Name != "" || !p.failing.IsZero() {
			t.Errorf("%s: %+v", name, p)
		}
	}
	now = now.Add(abandoned + time.Second)
	m.keep(migrationKey{name: "gadgets.example.org"}, progress{})
	if len(m.known) != 1 {
		t.Errorf("%d migrations are remembered", len(m.known))
	}
	m.forget(migrationKey{name: "gadgets.example.org"})
	if len(m.known) != 0 {
		t.Errorf("%d migrations are remembered", len(m.known))
	}
}

// Which answers concern one resource, and which the server of all.
func TestResponseOf(t *testing.T) {
	of, cause := schema.GroupResource{Group: "example.org", Resource: "widgets"}, errors.New("x")
	conversion := "conversion webhook for example.org/v1, Kind=Widget failed: x"
	coded := func(code int32, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message}}
	}
	tests := map[string]struct {
		err  error
		want response
	}{
		"written":             {nil, settled},
		"others were faster":  {apierrors.NewConflict(of, "w", cause), settled},
		"gone":                {apierrors.NewNotFound(of, "w"), settled},
		"invalid":             {apierrors.NewInvalid(schema.GroupKind{Kind: "Widget"}, "w", nil), refused},
		"forbidden":           {apierrors.NewForbidden(of, "w", cause), refused},
		"bad request":         {apierrors.NewBadRequest("x"), refused},
		"too large":           {apierrors.NewRequestEntityTooLargeError("x"), refused},
		"quoted":              {coded(http.StatusUnprocessableEntity, `Widget "w" is invalid: "`+conversion+`"`), refused},
		"denied":              {coded(http.StatusConflict, `admission webhook "x" denied the request`), refused},
		"no answer":           {cause, failing},
		"internal":            {apierrors.NewInternalError(cause), failing},
		"timeout":             {apierrors.NewTimeoutError("x", 1), failing},
		"server timeout":      {apierrors.NewServerTimeout(of, "patch", 1), failing},
		"unavailable":         {apierrors.NewServiceUnavailable("x"), failing},
		"busy":                {apierrors.NewTooManyRequests("x", 1), failing},
		"unauthorized":        {apierrors.NewUnauthorized("x"), failing},
		"conversion":          {coded(http.StatusInternalServerError, conversion), failing},
		"conversion denied":   {coded(http.StatusForbidden, conversion), failing},
		"conversion notfound": {coded(http.StatusNotFound, conversion), failing},
	}
	for name, tt := range tests {
		if got := responseOf(tt.err); got != tt.want {
			t.Errorf("%s: %v: got %d", name, tt.err, got)
		}
	}
}
