// SPDX-License-Identifier: Apache-2.0

package waiting

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/sourcefetch/credentials"
)

// stuckReader is an API server that does not answer until the test allows it.
type stuckReader struct {
	client.Reader
	asked chan struct{}
	end   chan struct{}
}

func (h stuckReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	h.asked <- struct{}{}
	<-h.end
	return nil
}

// T16: checks of Secrets hold only a few workers of a namespace.
func TestT16FewLookAtSecretsAtOnce(t *testing.T) {
	var w Waiting
	reader := stuckReader{asked: make(chan struct{}, 100), end: make(chan struct{})}
	now := time.Now()
	object := func(namespace string, i int) *v1alpha1.BundleSource {
		o := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint(i)}}
		o.Status.Conditions = []metav1.Condition{{Type: "Ready"}}
		return o
	}
	pauses := make(chan time.Duration, 100)
	look := func(namespace string, i int) {
		o := object(namespace, i)
		w.Keep(o, credentials.Seen{{Kind: "Secret", Name: "x"}: ""}, now, time.Hour, LookEvery)
		pauses <- w.Pause(t.Context(), reader, o, now)
	}
	for i := range mostLooks {
		go look("hostile", i)
		<-reader.asked
	}
	for i := range 20 {
		look("hostile", 100+i)
		if got := <-pauses; got != busyPause {
			t.Errorf("one too many is left alone for %s, want %s", got, busyPause)
		}
	}
	go look("other", 0)
	<-reader.asked
	close(reader.end)
	for range mostLooks + 1 {
		if got := <-pauses; got != 0 { // it exists by now
			t.Errorf("a source with a new Secret waits for %s", got)
		}
	}
	if len(w.looks) > 0 {
		t.Errorf("looks are still under way: %v", w.looks)
	}
}
