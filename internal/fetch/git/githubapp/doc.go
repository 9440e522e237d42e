// SPDX-License-Identifier: Apache-2.0

// Package githubapp logs in as an installation of a GitHub App, and keeps the tokens that it gets for that.
package githubapp
