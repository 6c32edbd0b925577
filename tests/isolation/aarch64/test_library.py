"""The library's guarantees to programs that reach it, on aarch64: the same tests, in an emulator.

Left out are tests whose programs execute others, which the emulator does not run, or restrict their own system calls,
which it ignores; and tests that need something only this machine has.
"""

from __future__ import annotations

import pytest

from isolation.library.test_captures import (
    test_a_library_that_is_opened_by_name_is_ours,
    test_a_name_without_a_hook_passes_on_all_its_arguments,
    test_a_program_that_was_linked_with_the_driver_is_bound_to_us,
    test_a_spare_name_that_was_given_to_nobody_answers_that_there_is_no_such_function,
    test_an_address_that_is_no_symbols_is_known_by_the_drivers_own_word,
    test_nvml_is_ours_too,
    test_the_default_symbols_are_ours,
    test_the_drivers_own_calls_of_what_it_exports_are_not_taken_for_the_programs,
)
from isolation.library.test_driver import (
    test_the_folders_of_the_environment_are_looked_at_in_order,
    test_where_there_is_no_driver_programs_are_told_so,
)
from isolation.library.test_paths import (
    test_a_program_with_a_dlopen_of_its_own_is_captured_too,
    test_so_is_a_path_of_nvml_and_its_name_without_a_version,
    test_the_drivers_file_by_another_name_is_the_drivers,
)
from isolation.library.test_processes import (
    test_a_process_that_uses_no_cuda_opens_nothing,
    test_closing_it_changes_nothing,
    test_signals_do_not_disturb_the_first_call,
    test_two_hundred_threads_make_the_first_call_at_once,
    test_without_a_broker_the_driver_does_not_start_and_the_process_goes_on,
)

__all__ = [
    "test_a_library_that_is_opened_by_name_is_ours",
    "test_a_name_without_a_hook_passes_on_all_its_arguments",
    "test_a_process_that_uses_no_cuda_opens_nothing",
    "test_a_program_that_was_linked_with_the_driver_is_bound_to_us",
    "test_a_program_with_a_dlopen_of_its_own_is_captured_too",
    "test_a_spare_name_that_was_given_to_nobody_answers_that_there_is_no_such_function",
    "test_an_address_that_is_no_symbols_is_known_by_the_drivers_own_word",
    "test_closing_it_changes_nothing",
    "test_nvml_is_ours_too",
    "test_signals_do_not_disturb_the_first_call",
    "test_so_is_a_path_of_nvml_and_its_name_without_a_version",
    "test_the_default_symbols_are_ours",
    "test_the_drivers_file_by_another_name_is_the_drivers",
    "test_the_drivers_own_calls_of_what_it_exports_are_not_taken_for_the_programs",
    "test_the_folders_of_the_environment_are_looked_at_in_order",
    "test_two_hundred_threads_make_the_first_call_at_once",
    "test_where_there_is_no_driver_programs_are_told_so",
    "test_without_a_broker_the_driver_does_not_start_and_the_process_goes_on",
]

pytestmark = pytest.mark.slow
