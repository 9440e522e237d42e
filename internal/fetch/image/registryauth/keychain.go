// SPDX-License-Identifier: Apache-2.0

package registryauth

import (
	"context"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// IdentityToken stands in the place of a user name when the password is an identity token: what a token server gives
// out in place of a password. That is how Docker's credential helpers write it.
const IdentityToken = "<token>"

// Keychain knows logins.
type Keychain interface {
	// Login returns the login for a repository of a registry, a host with its port unless that is 443, in the form of package
	// endpoint, and index.docker.io for Docker Hub; false when there is none. Without a repository it is about a token server.
	Login(ctx context.Context, host, repository string) (login fetch.Login, found bool, err error)
}

// KeychainFunc is a function that is a Keychain.
type KeychainFunc func(ctx context.Context, host, repository string) (fetch.Login, bool, error)

// Login calls f.
func (f KeychainFunc) Login(ctx context.Context, host, repository string) (fetch.Login, bool, error) {
	return f(ctx, host, repository)
}

// Keychains asks several keychains in turn. The first one that has a login decides; those that are nil are passed over.
func Keychains(several ...Keychain) Keychain {
	return KeychainFunc(func(ctx context.Context, host, repository string) (fetch.Login, bool, error) {
		for _, each := range several {
			if each == nil {
				continue
			}
			if login, found, err := each.Login(ctx, host, repository); found || err != nil {
				return login, found, err
			}
		}
		return fetch.Login{}, false, nil
	})
}
