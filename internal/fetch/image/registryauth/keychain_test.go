// SPDX-License-Identifier: Apache-2.0

package registryauth

import (
	"context"
	"testing"

	"github.com/satchel-dev/satchel/internal/fetch"
)

func TestKeychains(t *testing.T) {
	broken := KeychainFunc(func(context.Context, string, string) (fetch.Login, bool, error) {
		return fetch.Login{}, false, fetch.Errorf(fetch.Unauthorized, "broken")
	})
	first, second := one("a", fetch.Login{Username: "1"}), one("b", fetch.Login{Username: "2"})
	all := Keychains(nil, first, one("a", fetch.Login{Username: "3"}), second, broken)
	for host, want := range map[string]string{"a": "1", "b": "2"} {
		if login, found, err := all.Login(context.Background(), host, ""); login.Username != want || !found || err != nil {
			t.Errorf("%s: %v %v %v", host, login, found, err)
		}
	}
	if _, _, err := all.Login(context.Background(), "c", ""); err == nil {
		t.Error("a broken keychain is passed over")
	}
	if _, found, err := Keychains().Login(context.Background(), "a", ""); found || err != nil {
		t.Error("no keychain has a login")
	}
}

// one is a keychain with a login for one host.
func one(host string, login fetch.Login) Keychain {
	return KeychainFunc(func(_ context.Context, asked, _ string) (fetch.Login, bool, error) {
		return login, asked == host, nil
	})
}
