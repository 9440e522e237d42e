// SPDX-License-Identifier: Apache-2.0

package tokenreview

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	authenticationv1 "k8s.io/api/authentication/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/artifact/server"
)

const (
	// acceptedFor is how long an accepted token is cached, and so how long a revoked
	// one may still be used.
	acceptedFor = 30 * time.Second
	// refusedFor is how long a refused token is cached.
	refusedFor = 10 * time.Second
	// mostRemembered bounds the cached answers of each kind.
	mostRemembered = 2048
	// mostReviews bounds the concurrent requests to the API server.
	mostReviews = 16
	// reviewTimeout bounds one request.
	reviewTimeout = 5 * time.Second
	// AccountPrefix is the prefix of the user name of a ServiceAccount.
	AccountPrefix = "system:serviceaccount:"
)

// Reviewer authenticates tokens of ServiceAccounts by TokenReview. Tokens are kept as
// keyed hashes only.
type Reviewer struct {
	client   client.Client
	audience string
	readers  []string // users who may read the artifacts of every namespace
	now      func() time.Time

	key    []byte
	flight singleflight.Group
	asking chan struct{}

	mu       sync.Mutex
	accepted map[string]answer // by hash
	refused  map[string]answer
	logged   time.Time // when a failure was logged last
}

// answer is the result of a review.
type answer struct {
	user  string
	until time.Time
}

// New returns an authenticator of tokens for an audience.
func New(c client.Client, audience string, readers []string) *Reviewer {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	return &Reviewer{
		client: c, audience: audience, readers: readers, now: time.Now, key: key, asking: make(chan struct{}, mostReviews),
		accepted: map[string]answer{}, refused: map[string]answer{},
	}
}

// Identify implements server.Readers: the readers may read everything, any other
// ServiceAccount the artifacts of its own namespace.
func (t *Reviewer) Identify(ctx context.Context, token string) (func(namespace string) bool, error) {
	user, err := t.User(ctx, token)
	if err != nil {
		return nil, err
	}
	own, _, _ := strings.Cut(strings.TrimPrefix(user, AccountPrefix), ":")
	return func(namespace string) bool {
		return slices.Contains(t.readers, user) || (strings.HasPrefix(user, AccountPrefix) && namespace == own)
	}, nil
}

// User is the name of the user of a token.
func (t *Reviewer) User(ctx context.Context, token string) (string, error) {
	if !t.worthAsking(token) {
		return "", server.ErrUnauthenticated
	}
	hash := t.hash(token)
	if user, known := t.remembered(hash); known {
		return found(user)
	}
	asked := t.flight.DoChan(hash, func() (any, error) { return t.review(hash, token) })
	select {
	case result := <-asked:
		if result.Err != nil {
			return "", result.Err
		}
		user, _ := result.Val.(string)
		return found(user)
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// found returns ErrUnauthenticated for no user.
func found(user string) (string, error) {
	if user == "" {
		return "", server.ErrUnauthenticated
	}
	return user, nil
}

// worthAsking rejects strings that cannot be a valid token for this audience by their
// unverified claims, so that the API server is not asked about them. The claims are not
// trusted otherwise.
func (t *Reviewer) worthAsking(token string) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return false
	}
	var claims struct {
		Audiences audiences `json:"aud"`
		Expires   float64   `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return false
	}
	return slices.Contains(claims.Audiences, t.audience) && claims.Expires > float64(t.now().Unix())
}

// audiences is one string or a list in a token.
type audiences []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audiences) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*a = audiences{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(a))
}

func (t *Reviewer) hash(token string) string {
	mac := hmac.New(sha256.New, t.key)
	mac.Write([]byte(token))
	return string(mac.Sum(nil))
}

// remembered is the cached result of a review; no user for a refused token.
func (t *Reviewer) remembered(hash string) (user string, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.accepted[hash]; t.now().Before(a.until) {
		return a.user, true
	}
	return "", t.now().Before(t.refused[hash].until)
}

// remember caches an answer. Accepted and refused tokens have separate caches, so that
// refused ones do not evict the others.
func (t *Reviewer) remember(hash, user string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	to, last := t.accepted, acceptedFor
	if user == "" {
		to, last = t.refused, refusedFor
	}
	now := t.now()
	if len(to) >= mostRemembered {
		maps.DeleteFunc(to, func(_ string, a answer) bool { return !now.Before(a.until) })
	}
	if len(to) >= mostRemembered {
		clear(to)
	}
	to[hash] = answer{user: user, until: now.Add(last)}
}

// review asks the API server. It continues when the first caller is gone, since others
// may wait for the same answer.
func (t *Reviewer) review(hash, token string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), reviewTimeout)
	defer cancel()
	select {
	case t.asking <- struct{}{}:
		defer func() { <-t.asking }()
	case <-ctx.Done():
		return "", fmt.Errorf("waiting to review a token: %w", ctx.Err())
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{t.audience}}}
	if err := t.client.Create(ctx, review); err != nil {
		t.tell(err)
		return "", fmt.Errorf("reviewing a token: %w", err)
	}
	user := ""
	if review.Status.Authenticated && slices.Contains(review.Status.Audiences, t.audience) {
		user = review.Status.User.Username
	}
	t.remember(hash, user)
	return user, nil
}

// tell logs a failure, once a minute.
func (t *Reviewer) tell(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.now(); now.Sub(t.logged) > time.Minute {
		t.logged = now
		ctrl.Log.Error(err, "tokens cannot be reviewed: let this controller create tokenreviews", "audience", t.audience)
	}
}
