/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_KUBE_PEM_TEST_H
#define HF_KUBE_PEM_TEST_H

/* A certificate without a private key, and its base64 form as a kubeconfig holds it. */
#define PEM_CERT                                                                                   \
	"-----BEGIN CERTIFICATE-----\n"                                                            \
	"MIIBbzCCARWgAwIBAgIUYsZCQn4ocuJZI3XctPUU1x3aV1wwCgYIKoZIzj0EAwIw\n"                       \
	"DDEKMAgGA1UEAwwBdDAgFw0yNjExMjEyMDE2NDRaGA8yMTI2MTAyODIwMTY0NFow\n"                       \
	"DDEKMAgGA1UEAwwBdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABHeuo5wwWVeE\n"                       \
	"e2HWR3iH6QWaYxCpkmFR7wgOw1xNyBAyKeaTc2zTg5lokcF8alEDTb0Gj/tMMFrm\n"                       \
	"yrprDr0+fgWjUzBRMB0GA1UdDgQWBBR9XHbRBGCu/h2yRfvtNzilLJj9eTAfBgNV\n"                       \
	"HSMEGDAWgBR9XHbRBGCu/h2yRfvtNzilLJj9eTAPBgNVHRMBAf8EBTADAQH/MAoG\n"                       \
	"CCqGSM49BAMCA0gAMEUCIQCe7vMVWTXYRwTfajoerokz8FbE3uZ0PJ48EIvfC9Az\n"                       \
	"cAIgDuSfaktl8kfjQKWTU3YJ34iaMjc1x2nrTDVZkY6ZGYY=\n"                                       \
	"-----END CERTIFICATE-----\n"
#define PEM_CERT_DATA                                                                              \
	"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJiekNDQVJXZ0F3SUJBZ0lVWXNaQ1FuNG9j"             \
	"dUpaSTNYY3RQVVUxeDNhVjF3d0NnWUlLb1pJemowRUF3SXcKRERFS01BZ0dBMVVFQXd3QmREQWdG"             \
	"dzB5TmpFeE1qRXlNREUyTkRSYUdBOHlNVEkyTVRBeU9ESXdNVFkwTkZvdwpEREVLTUFnR0ExVUVB"             \
	"d3dCZERCWk1CTUdCeXFHU000OUFnRUdDQ3FHU000OUF3RUhBMElBQkhldW81d3dXVmVFCmUySFdS"             \
	"M2lINlFXYVl4Q3BrbUZSN3dnT3cxeE55QkF5S2VhVGMyelRnNWxva2NGOGFsRURUYjBHai90TU1G"             \
	"cm0KeXJwckRyMCtmZ1dqVXpCUk1CMEdBMVVkRGdRV0JCUjlYSGJSQkdDdS9oMnlSZnZ0TnppbExK"             \
	"ajllVEFmQmdOVgpIU01FR0RBV2dCUjlYSGJSQkdDdS9oMnlSZnZ0TnppbExKajllVEFQQmdOVkhS"             \
	"TUJBZjhFQlRBREFRSC9NQW9HCkNDcUdTTTQ5QkFNQ0EwZ0FNRVVDSVFDZTd2TVZXVFhZUndUZmFq"             \
	"b2Vyb2t6OEZiRTN1WjBQSjQ4RUl2ZkM5QXoKY0FJZ0R1U2Zha3RsOGtmalFLV1RVM1lKMzRpYU1q"             \
	"YzF4Mm5yVERWWmtZNlpHWVk9Ci0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K"

#endif
