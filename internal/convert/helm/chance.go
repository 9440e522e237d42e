// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"time"
)

// Charts make up passwords and certificates, and ask for the time:
//
//	password: {{ .Values.password | default (randAlphaNum 16) | b64enc }}
//
// calls the function although a password is given, so that refusing the call would refuse most charts with passwords. Here
// these functions answer with fixed values of the form asked for. Where a chart called one, it is rendered again with other
// answers: what comes out the same does not depend on them, and anything else is refused in the name of the function. Nothing
// that these functions answer ever becomes part of an object.

// Reasons for which what a function answers cannot be part of an object.
const (
	isRandom = "gives another value at each render"
	isClock  = "depends on the time of day"
)

// remedies for them.
var remedies = map[string]string{
	isRandom: "give the value that it would make up in spec.helm.values, or in a Secret that spec.helm.valuesFrom names",
	isClock:  "give the time in spec.helm.values",
}

// refusal is the error of a function that would make two renders differ.
type refusal struct{ function, why string }

func (r *refusal) Error() string { return fmt.Sprintf("the function %s %s", r.function, r.why) }

// chance answers for functions of chance and time during one render. Calls are numbered from 0 in the order in which they come.
type chance struct {
	calls   []refusal
	changed int // the calls before this one are answered in the other way
	refused int // the call that is refused; none: -1
}

// call takes down a call and tells in which way it is answered.
func (c *chance) call(function, why string) (other bool, err error) {
	n := len(c.calls)
	c.calls = append(c.calls, refusal{function, why})
	if n == c.refused {
		return false, &c.calls[n]
	}
	return n < c.changed, nil
}

// text makes a text that differs in each character between the two ways, and between calls.
func (c *chance) text(function string, length int, alphabet string) (string, error) {
	other, err := c.call(function, isRandom)
	if err != nil {
		return "", err
	}
	var made strings.Builder
	for i := range max(length, 0) {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %d", len(c.calls), i))
		at := int(sum[0])
		if other {
			at += len(alphabet) / 2
		}
		made.WriteByte(alphabet[at%len(alphabet)])
	}
	return made.String(), nil
}

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"
	hexes   = "0123456789abcdef"
)

// now is the time of day: long ago, or far ahead.
func (c *chance) now(function string) (time.Time, error) {
	other, err := c.call(function, isClock)
	if other {
		return time.Date(2200, 1, 2, 3, 4, 5, 0, time.UTC), err
	}
	return time.Date(1990, 11, 12, 13, 14, 15, 0, time.UTC), err
}

// certificate is what functions return that make a key and a certificate.
type certificate struct{ Cert, Key string }

// functions are all that make something up. Arguments that only decide what is made up are not looked at.
func (c *chance) functions() template.FuncMap {
	all := template.FuncMap{
		"randAlphaNum": func(n int) (string, error) { return c.text("randAlphaNum", n, letters+digits) },
		"randAlpha":    func(n int) (string, error) { return c.text("randAlpha", n, letters) },
		"randAscii":    func(n int) (string, error) { return c.text("randAscii", n, letters+digits) },
		"randNumeric":  func(n int) (string, error) { return c.text("randNumeric", n, digits) },
		"randBytes": func(n int) (string, error) {
			made, err := c.text("randBytes", n, letters)
			return base64.StdEncoding.EncodeToString([]byte(made)), err
		},
		"randInt": func(from, to int) (int, error) {
			if from >= to {
				return 0, errors.New("the first number has to be less than the second")
			}
			other, err := c.call("randInt", isRandom)
			if other {
				return to - 1, err
			}
			return from, err
		},
		"shuffle": c.shuffle,
		"uuidv4": func() (string, error) {
			made, err := c.text("uuidv4", 32, hexes)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("%s-%s-4%s-a%s-%s", made[:8], made[8:12], made[13:16], made[17:20], made[20:]), nil
		},
		"htpasswd": func(user, _ string) (string, error) {
			made, err := c.text("htpasswd", 60, letters)
			return user + ":" + made, err
		},
		"now": func() (time.Time, error) { return c.now("now") },
		"ago": func(of any) (string, error) {
			now, err := c.now("ago")
			return now.Sub(timeOf(of, now)).Round(time.Second).String(), err
		},
	}
	for _, name := range []string{"bcrypt", "encryptAES", "genPrivateKey"} {
		all[name] = func(...any) (string, error) { return c.text(name, 60, letters) }
	}
	for _, name := range []string{"genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey"} {
		all[name] = func(...any) (certificate, error) {
			made, err := c.text(name, 60, letters)
			return certificate{made, made}, err
		}
	}
	return all
}

func (c *chance) shuffle(text string) (string, error) {
	other, err := c.call("shuffle", isRandom)
	if err != nil || !other {
		return text, err
	}
	runes := []rune(text)
	for i := range len(runes) / 2 {
		runes[i], runes[len(runes)-1-i] = runes[len(runes)-1-i], runes[i]
	}
	return string(runes), nil
}
