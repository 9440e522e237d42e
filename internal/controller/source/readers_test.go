// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/server"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/controller/source"
	"github.com/satchel-dev/satchel/internal/controller/source/tokenreview"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

const audience = "satchel-artifacts"

// T12: with required tokens, a Pod reads the artifacts of its own namespace, the
// deployment controller all of them, and other clients none.
func TestT12ArtifactsNeedATokenOfTheirNamespace(t *testing.T) {
	r := newRig(t)
	a, b := controlplane.NewNamespace(t, r.cp), controlplane.NewNamespace(t, r.cp)
	reviews := &countingClient{Client: accountClient(t, r)}
	store := newStore(t)
	readers := tokenreview.New(reviews, audience, []string{"system:serviceaccount:" + b + ":reader"}).Identify
	mine, theirs := keep(t, store, a), keep(t, store, b)
	server := httptest.NewServer(server.NewHandler(store, server.Options{Readers: readers}))
	t.Cleanup(server.Close)
	for _, account := range []client.ObjectKey{{Namespace: a, Name: "pod"}, {Namespace: b, Name: "reader"}} {
		if err := r.admin.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}); err != nil {
			t.Fatal(err)
		}
	}
	pod := token(t, r, a, "pod", audience)
	for name, tc := range map[string]struct {
		token        string
		mine, theirs int
	}{
		"own namespace":   {pod, 200, 403},
		"reader of all":   {token(t, r, b, "reader", audience), 200, 200},
		"other audience":  {token(t, r, a, "pod", "others"), 401, 401},
		"API's audience":  {token(t, r, a, "pod", ""), 401, 401},
		"forged":          {pod[:strings.LastIndex(pod, ".")] + ".AAAA", 401, 401},
		"rubbish":         {"rubbish", 401, 401},
		"no token at all": {"", 401, 401},
	} {
		absent := tc.theirs
		if absent == http.StatusOK {
			absent = http.StatusNotFound // who may read it may know that it does not exist
		}
		for path, want := range map[string]int{mine.Path: tc.mine, theirs.Path: tc.theirs, guessed(theirs.Path): absent} {
			if got := ask(t, server.URL+"/"+path, tc.token); got != want {
				t.Errorf("%s: %s is answered with %d, want %d", name, path, got, want)
			}
		}
	}
	before := reviews.created.Load()
	for range 20 {
		ask(t, server.URL+"/"+mine.Path, pod)
	}
	if asked := reviews.created.Load() - before; asked > 0 {
		t.Errorf("the API server was asked %d times about a token that it answered for", asked)
	}
	if total := reviews.created.Load(); total > 4 { // own, reader, forged; and one to spare for a slow machine
		t.Errorf("%d reviews for three plausible tokens", total)
	}
}

// A controller that may not review tokens serves nothing, and says so by 503.
func TestT12NothingIsServedWithoutReviews(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	if err := installation.Account(t.Context(), r.admin, namespace, "reader", "view", namespace); err != nil {
		t.Fatal(err)
	}
	config, err := installation.AccountConfig(t.Context(), r.cp.RESTConfig(), namespace, "reader")
	if err != nil {
		t.Fatal(err)
	}
	store := newStore(t)
	readers := tokenreview.New(newClient(t, config), audience, nil).Identify
	mine := keep(t, store, namespace)
	server := httptest.NewServer(server.NewHandler(store, server.Options{Readers: readers}))
	t.Cleanup(server.Close)
	if got := ask(t, server.URL+"/"+mine.Path, token(t, r, namespace, "reader", audience)); got != http.StatusServiceUnavailable {
		t.Errorf("answered %d, want 503", got)
	}
}

// countingClient counts what is created.
type countingClient struct {
	client.Client
	created atomic.Int64
}

func (c *countingClient) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	c.created.Add(1)
	return c.Client.Create(ctx, object, options...)
}

// accountClient uses the source controller's ServiceAccount.
func accountClient(t *testing.T, r *rig) client.Client {
	t.Helper()
	config, err := installation.AccountConfig(t.Context(), r.cp.RESTConfig(), installation.Namespace, source.FieldManager)
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, config)
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := installation.Client(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newStore(t *testing.T) *storage.Store {
	t.Helper()
	store, err := storage.Open(storage.Options{Dir: t.TempDir(), BaseURL: "http://127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// keep stores something for a source of a namespace.
func keep(t *testing.T, store *storage.Store, namespace string) meta.Artifact {
	t.Helper()
	a, err := store.Put(t.Context(), artifact.SourceOwner(namespace, "app"), "", fstest.MapFS{"a": {Data: []byte(namespace)}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// guessed is the path of an artifact that does not exist.
func guessed(path string) string {
	return filepath.Dir(path) + "/" + strings.Repeat("0", 64) + ".tar.gz"
}

// token is a token of a ServiceAccount, like the kubelet projects it into a Pod.
func token(t *testing.T, r *rig, namespace, account, audience string) string {
	t.Helper()
	clients, err := kubernetes.NewForConfig(r.cp.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	request, err = clients.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// ask gets a URL with a token, and returns the status.
func ask(t *testing.T, url, token string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := (&http.Client{Timeout: 30 * time.Second}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}
