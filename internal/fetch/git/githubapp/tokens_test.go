// SPDX-License-Identifier: Apache-2.0

package githubapp

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"
)

func newTestApp(t *testing.T, tokens *Tokens) *App {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	a, err := New(Options{ID: "7", InstallationID: "42", PrivateKey: text, Tokens: tokens}, &http.Client{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestPublicGitHubIsTheDefault(t *testing.T) {
	if a := newTestApp(t, nil); a.base.String() != "https://api.github.com" {
		t.Errorf("the API is %s", a.base)
	}
}

func TestTokensAreBounded(t *testing.T) {
	tokens, end := NewTokens(), time.Now().Add(time.Hour)
	for i := range 2 * maxTokens {
		if _, err := tokens.get(t.Context(), sha256.Sum256(fmt.Append(nil, i)), func() (string, time.Time, error) { return "x", end, nil }); err != nil {
			t.Fatal(err)
		}
	}
	if len(tokens.kept) > maxTokens {
		t.Errorf("%d are kept", len(tokens.kept))
	}
	a := newTestApp(t, tokens)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tokens.place(a.same).buying <- struct{}{}
	if _, err := a.Login(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting ends with the context: %v", err)
	}
}
