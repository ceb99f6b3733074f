/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "mend/mend_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/*
 * Resets devices by the vendor's tool: nvidia-smi --gpu-reset, or amd-smi reset.  The tool is that of the host,
 * because it must fit the loaded driver.
 */

#define NVIDIA_SMI "nvidia-smi"
#define AMD_SMI "amd-smi"
#define NVIDIA_UUID "GPU-"
#define AMD_VENDOR "0x1002"
/* Timeout of a question to the tool, which hangs if the device hangs. */
#define ASK_TIMEOUT (30 * HF_SECOND)
#define HOLDERS_EVERY HF_SECOND

/* ---- which tool ------------------------------------------------------------------------------- */

static bool is_amd(const struct hf_mend_options *options, const char *id)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(64);
	HF_AUTOFREE char *path = NULL;

	if (options->sys == NULL || id == NULL || strchr(id, '/') != NULL)
		return false;
	path = hf_xasprintf("%s/bus/pci/devices/%s/vendor", options->sys, id);
	return hf_fs_read_regular(path, &text, NULL) == 0 &&
	       hf_str_has_prefix(text.data, AMD_VENDOR);
}

/* Whether the text may be a UUID on a command line: only letters that no tool takes for a flag or a list. */
static bool is_uuid(const char *uuid)
{
	static const char letters[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-/";
	size_t len = strlen(uuid);

	return len > 0 && len < 80 && uuid[0] != '-' && strspn(uuid, letters) == len;
}

static bool is_pci_address(const char *id)
{
	size_t len = id != NULL ? strlen(id) : 0;

	return len > 0 && len < 32 && strspn(id, "0123456789abcdefABCDEF:.") == len;
}

static void add_word(char *list, size_t size, const char *word)
{
	size_t len = strlen(list);

	snprintf(list + len, size - len, "%s%s", len > 0 ? "," : "", word);
}

static int find_vendor(const struct hf_mend_options *options, struct hf_mend_reset *reset,
		       struct hf_error *err)
{
	size_t nvidia = 0, amd = 0;

	for (size_t i = 0; i < reset->spec->devices.len; i++) {
		const struct hf_remediation_device *device = &reset->spec->devices.items[i];

		if (!is_uuid(device->uuid))
			return hf_error_set(err, HF_E_INVALID,
					    "spec.devices[%zu].uuid: not the UUID of a device", i);
		if (hf_str_has_prefix(device->uuid, NVIDIA_UUID)) {
			nvidia++;
			add_word(reset->uuids, sizeof(reset->uuids), device->uuid);
		} else if (is_pci_address(device->id) && is_amd(options, device->id)) {
			amd++;
		}
	}
	if (nvidia + amd != reset->spec->devices.len || nvidia + amd == 0 ||
	    (nvidia > 0 && amd > 0))
		return hf_error_set(
			err, HF_E_UNSUPPORTED,
			"spec.devices: only devices of one vendor, NVIDIA or AMD, can be reset");
	reset->nvidia = nvidia > 0;
	return 0;
}

/* Finds the folder with the tool: the driver's container of the GPU Operator has a root folder of its own, with
 * the tool that fits the driver. */
static int find_tool(const struct hf_mend_options *options, struct hf_mend_reset *reset,
		     struct hf_error *err)
{
	static const char *const roots[] = {HF_MEND_DRIVER_ROOT, ""};
	const char *name = reset->nvidia ? NVIDIA_SMI : AMD_SMI;

	if (options->root == NULL)
		return hf_error_set(err, HF_E_UNSUPPORTED,
				    "--root was not given: no tool of the host is available");
	for (size_t i = reset->nvidia ? 0 : 1; i < HF_ARRAY_LEN(roots); i++) {
		snprintf(reset->root, sizeof(reset->root), "%s%s", options->root, roots[i]);
		if (hf_mend_tool_exists(reset->root, name))
			return 0;
	}
	return hf_error_set(err, HF_E_NOT_FOUND, "the host has no %s below '%s'", name,
			    options->root);
}

/* ---- persistence mode ------------------------------------------------------------------------- */

/* Reads a line of the tool's answer: "GPU-1, Enabled". */
static void read_mode(struct hf_mend_reset *reset, const char *line, size_t len)
{
	for (size_t i = 0; i < reset->spec->devices.len; i++) {
		const char *uuid = reset->spec->devices.items[i].uuid;
		size_t uuid_len = strlen(uuid);
		bool on;

		if (len <= uuid_len || strncmp(line, uuid, uuid_len) != 0 ||
		    line[uuid_len] != ',' || reset->persistence_len == HF_REMEDIATION_DEVICES_MAX)
			continue;
		on = memmem(line, len, "Enabled", strlen("Enabled")) != NULL;
		reset->persistence[reset->persistence_len++] =
			(struct hf_field_pair){.key = uuid, .value = on ? "on" : "off"};
		if (on)
			add_word(reset->persistence_on, sizeof(reset->persistence_on), uuid);
		return;
	}
}

/* Asks for the persistence mode, which keeps the device open.  If the tool gives no answer, the act leaves the
 * mode as it is. */
static void ask_persistence(const struct hf_mend_options *options, struct hf_mend_reset *reset)
{
	const struct hf_mend_tool tool = {
		.root = reset->root,
		.argv = {NVIDIA_SMI, "-i", reset->uuids, "--query-gpu=uuid,persistence_mode",
			 "--format=csv,noheader"},
		.timeout = hf_mend_shorter_of(ASK_TIMEOUT, options->tool_timeout),
	};
	struct hf_mend_tool_result result;

	if (hf_mend_tool_run(options, &tool, &result, NULL) != 0 || result.exit_code != 0)
		return;
	/* The lines of the output are joined by blanks, and no UUID has a blank. */
	for (const char *at = result.output; (at = strstr(at, NVIDIA_UUID)) != NULL;) {
		const char *next = strstr(at + 1, " " NVIDIA_UUID);
		size_t len = next != NULL ? (size_t)(next - at) : strlen(at);

		read_mode(reset, at, len);
		at += len;
	}
}

static void set_persistence(const struct hf_mend_options *options,
			    const struct hf_mend_reset *reset, const char *mode)
{
	const struct hf_mend_tool tool = {
		.root = reset->root,
		.argv = {NVIDIA_SMI, "-i", reset->persistence_on, "-pm", mode},
		.timeout = hf_mend_shorter_of(ASK_TIMEOUT, options->tool_timeout),
	};
	struct hf_mend_tool_result result;

	/* The result is not checked: a failure shows in the reset, or in the report of the agent. */
	if (reset->persistence_on[0] != '\0')
		(void)(hf_mend_tool_run(options, &tool, &result, NULL) == 0);
}

/* ---- the reset -------------------------------------------------------------------------------- */

static int wait_for_holders(const struct hf_mend_options *options, struct hf_mend_reset *reset,
			    struct hf_error *err)
{
	hf_time until = hf_time_add(hf_loop_mono(options->loop), options->holders_wait);
	struct hf_mend_files files;
	int rc;

	hf_mend_find_files(options, reset->spec, reset->nvidia, &files);
	for (;;) {
		rc = hf_mend_find_holders(options, &files, &reset->holders, err);
		if (rc != 0 || reset->holders.total == 0 || hf_loop_mono(options->loop) >= until)
			return rc;
		hf_mend_wait(options->loop,
			     hf_mend_shorter_of(HOLDERS_EVERY, options->holders_wait));
	}
}

/* The diagnostic command is the host's; the driver's container may have it too. */
static int find_diagnostic(const struct hf_mend_options *options, struct hf_mend_reset *reset,
			   struct hf_error *err)
{
	static const char *const roots[] = {"", HF_MEND_DRIVER_ROOT};

	if (options->diagnostic[0] == NULL)
		return 0;
	for (size_t i = 0; i < HF_ARRAY_LEN(roots); i++) {
		snprintf(reset->diagnostic_root, sizeof(reset->diagnostic_root), "%s%s",
			 options->root, roots[i]);
		if (hf_mend_tool_exists(reset->diagnostic_root, options->diagnostic[0]))
			return 0;
	}
	return hf_error_set(err, HF_E_NOT_FOUND, "the host has no diagnostic program '%.64s'",
			    options->diagnostic[0]);
}

int hf_mend_reset_prepare(const struct hf_mend_options *options,
			  const struct hf_remediation_spec *spec, struct hf_mend_reset *ret_reset,
			  struct hf_error *err)
{
	int rc;

	*ret_reset = (struct hf_mend_reset){.spec = spec};
	rc = find_vendor(options, ret_reset, err);
	if (rc == 0)
		rc = find_tool(options, ret_reset, err);
	if (rc == 0)
		rc = find_diagnostic(options, ret_reset, err);
	if (rc == 0 && ret_reset->nvidia)
		ask_persistence(options, ret_reset);
	if (rc == 0)
		rc = wait_for_holders(options, ret_reset, err);
	return rc;
}

/* Explains an exit code of the tool to people. */
static const char *explain_exit(bool nvidia, int exit_code)
{
	switch (nvidia ? exit_code : -1) {
	case 3: return "not available on this device";
	case 4: return "no permission";
	case 9: return "no driver is loaded";
	case 15: return "the device has fallen off the bus";
	default: return "failed";
	}
}

static void tell_result(const struct hf_mend_reset *reset, const struct hf_mend_tool_result *result,
			struct hf_mend_outcome *ret_outcome)
{
	const char *output = result->output[0] != '\0' ? result->output : "no output";

	ret_outcome->exit_code = result->exit_code;
	if (result->timed_out) {
		/* If the tool exits with 0 after SIGTERM at the timeout, the tool has not finished
		 * the reset. */
		ret_outcome->exit_code = -1;
		snprintf(ret_outcome->message, sizeof(ret_outcome->message),
			 "%s %s after its deadline: %.400s", reset->nvidia ? NVIDIA_SMI : AMD_SMI,
			 result->hung ? "hung" : "was ended", output);
	} else if (result->exit_code == 0) {
		snprintf(ret_outcome->message, sizeof(ret_outcome->message), "%s", output);
	} else {
		snprintf(ret_outcome->message, sizeof(ret_outcome->message), "%s: %.400s",
			 explain_exit(reset->nvidia, result->exit_code), output);
	}
}

/* The reset said 0. The device is only as good as the diagnostic finds it. */
static void run_diagnostic(const struct hf_mend_options *options, const struct hf_mend_reset *reset,
			   struct hf_mend_outcome *outcome)
{
	struct hf_mend_tool tool = {.root = reset->diagnostic_root,
				    .timeout = options->diagnostic_timeout};
	struct hf_mend_tool_result result;
	struct hf_error err;

	memcpy(tool.argv, options->diagnostic, sizeof(options->diagnostic));
	if (hf_mend_tool_run(options, &tool, &result, &err) != 0) {
		outcome->exit_code = -1;
		snprintf(outcome->message, sizeof(outcome->message), "diagnostic %.64s: %.400s",
			 tool.argv[0], err.text);
	} else if (result.timed_out) {
		outcome->exit_code = -1;
		snprintf(outcome->message, sizeof(outcome->message),
			 "diagnostic %.64s %s after its deadline: %.350s", tool.argv[0],
			 result.hung ? "hung" : "was ended", result.output);
	} else if (result.exit_code != 0) {
		outcome->exit_code = result.exit_code;
		snprintf(outcome->message, sizeof(outcome->message),
			 "diagnostic %.64s failed: %.400s", tool.argv[0], result.output);
	}
}

/* Ends the processes of the agent. It replaces its process each minute while a device has failed, so another one may have
 * opened the devices since the search for holders. */
static void end_watchers(const struct hf_mend_options *options, const struct hf_mend_reset *reset)
{
	struct hf_mend_files files;
	struct hf_mend_holders holders;

	hf_mend_find_files(options, reset->spec, reset->nvidia, &files);
	if (hf_mend_find_holders(options, &files, &holders, NULL) == 0)
		hf_mend_end_watchers(options, &holders);
}

void hf_mend_reset_act(const struct hf_mend_options *options, const struct hf_mend_reset *reset,
		       struct hf_mend_outcome *ret_outcome)
{
	struct hf_mend_tool tool = {.root = reset->root, .timeout = options->tool_timeout};
	const char *const nvidia[] = {NVIDIA_SMI, "--gpu-reset", "-i", reset->uuids};
	const char *const amd[] = {AMD_SMI, "reset", "--gpureset", "-g"};
	struct hf_mend_tool_result result;
	struct hf_error err;

	if (reset->nvidia) {
		memcpy(tool.argv, nvidia, sizeof(nvidia));
	} else {
		memcpy(tool.argv, amd, sizeof(amd));
		for (size_t i = 0; i < reset->spec->devices.len; i++)
			tool.argv[HF_ARRAY_LEN(amd) + i] = reset->spec->devices.items[i].id;
	}
	*ret_outcome = (struct hf_mend_outcome){.tool = tool.argv[0]};
	set_persistence(options, reset, "0");
	/* The agent starts its process again after 30 s. So end it right before the reset. */
	end_watchers(options, reset);
	if (hf_mend_tool_run(options, &tool, &result, &err) == 0) {
		tell_result(reset, &result, ret_outcome);
	} else {
		ret_outcome->exit_code = -1;
		snprintf(ret_outcome->message, sizeof(ret_outcome->message), "%.500s", err.text);
	}
	set_persistence(options, reset, "1");
	if (ret_outcome->exit_code == 0 && options->diagnostic[0] != NULL)
		run_diagnostic(options, reset, ret_outcome);
}
