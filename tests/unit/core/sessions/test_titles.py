import pytest

from gateway_sessions.core.sessions.titles import (
    MAX_TITLE,
    clean_title,
    lineage_range,
    next_title,
    numbered_titles_of,
    split_numbered_title,
)
from gateway_sessions.errors import InvalidInputError, InvalidTitleError


class TestCleaning:
    @pytest.mark.parametrize(
        ("text", "title"),
        [
            ("Trip", "Trip"),
            ("  Trip  to\tRome\n", "Trip to Rome"),
            ("Trip\r\nto Rome", "Trip to Rome"),
            ("Trip\x00\x07\x1b[31m to\x7f Rome\x9f", "Trip[31m to Rome"),
            ("T\u200br\u2060i\ufeffp", "Trip"),
            ("\u202epirT\u202c", "pirT"),
            ("Tr\u2028ip\u2029", "Trip"),
            ("Trip\U000e0041\U000e007f", "Trip"),
            ("Cafe\u0301", "Caf\u00e9"),
            ("Cafe\u200b\u0301", "Caf\u00e9"),
            ("half \ud83d", "half \ufffd"),
            ("Reise nach Köln", "Reise nach Köln"),
            ("旅行 計画", "旅行 計画"),
            ("旅行\u3000計画", "旅行 計画"),
            ("🚀 launch ❤\ufe0f", "🚀 launch ❤\ufe0f"),
            ('100%_done (v2) #1: "it\'s" <ok> & done?!', '100%_done (v2) #1: "it\'s" <ok> & done?!'),
        ],
    )
    def test_a_title_is_one_composed_line_of_what_shows(self, text, title):
        assert clean_title(text) == title

    @pytest.mark.parametrize("text", ["", "   ", "\n\t\r", "\x00\x01", "\u200b\u200d", "\u202e \ufeff"])
    def test_a_title_that_shows_nothing_is_refused(self, text):
        with pytest.raises(InvalidTitleError, match="empty") as caught:
            clean_title(text)
        assert caught.value.length == 0

    def test_a_hundred_characters_are_allowed(self):
        assert clean_title("x" * 100) == "x" * 100

    def test_a_hundred_and_one_are_refused(self):
        with pytest.raises(InvalidTitleError, match="101 characters, 100 are allowed"):
            clean_title("x" * 101)

    def test_only_what_is_left_after_cleaning_counts(self):
        assert clean_title("  " + "x " * 50 + "\u200b" * 500) == ("x " * 50).strip()
        assert clean_title("e\u0301" * 100) == "\u00e9" * 100

    def test_a_bad_title_is_a_bad_input(self):
        assert issubclass(InvalidTitleError, InvalidInputError)
        assert issubclass(InvalidTitleError, ValueError)


class TestLineage:
    @pytest.mark.parametrize(
        ("title", "base", "number"),
        [
            ("Trip", "Trip", 1),
            ("Trip #2", "Trip", 2),
            ("Trip #10", "Trip", 10),
            ("Trip #007", "Trip", 7),
            ("Trip #0", "Trip", 0),
            ("Trip #2 #3", "Trip #2", 3),
            ("Trip #idea", "Trip #idea", 1),
            ("Trip #", "Trip #", 1),
            ("Trip#2", "Trip#2", 1),
            ("#2", "#2", 1),
            ("Trip #٣", "Trip #٣", 1),
            ("Ticket #20260101123456", "Ticket #20260101123456", 1),
        ],
    )
    def test_a_title_is_a_base_and_a_number(self, title, base, number):
        assert split_numbered_title(title) == (base, number)

    @pytest.mark.parametrize(
        ("title", "taken", "following"),
        [
            ("Trip", [], "Trip"),
            ("Trip", ["Other", "Other #7"], "Trip"),
            ("Trip", ["Trip"], "Trip #2"),
            ("Trip", ["Trip", "Trip #2"], "Trip #3"),
            ("Trip", ["Trip", "Trip #2", "Trip #9"], "Trip #10"),
            ("Trip", ["Trip #4"], "Trip #5"),
            ("Trip", ["Trip #0"], "Trip #2"),
            ("Trip #2", [], "Trip"),
            ("Trip #2", ["Trip", "Trip #2"], "Trip #3"),
            ("Trip #5", ["Trip"], "Trip #2"),
            ("Trip", ["Trip #idea", "Trip to Rome #9", "trip"], "Trip"),
            ("100%_a", ["100%_a", "100xya #8", "100%ba #9"], "100%_a #2"),
            ("  Trip\u200b ", ["Trip"], "Trip #2"),
        ],
    )
    def test_the_next_title_continues_the_lineage(self, title, taken, following):
        assert next_title(title, taken) == following

    def test_a_lineage_of_a_long_title_stays_within_the_limit(self):
        title = "x" * MAX_TITLE
        taken: list[str] = []
        for _ in range(120):
            following = next_title(title, taken)
            assert len(following) <= MAX_TITLE
            assert following not in taken
            assert clean_title(following) == following
            taken.append(following)
        assert taken[:2] == [title, "x" * 97 + " #2"]
        assert taken[-1] == "x" * 95 + " #120"

    def test_a_cut_does_not_leave_a_space_behind(self):
        title = "x" * 96 + " yyy"
        assert next_title(title, [title]) == "x" * 96 + " #2"

    def test_a_lineage_at_the_end_of_numbers_goes_on(self):
        taken = ["Trip", "Trip #999999999"]
        for _ in range(3):
            taken.append(next_title("Trip", taken))
        assert taken[2:] == ["Trip #1000000000", "Trip #1000000001", "Trip #1000000002"]

    @pytest.mark.parametrize("title", ["", " \u200b", "x" * 101])
    def test_a_bad_title_has_no_continuation(self, title):
        with pytest.raises(InvalidTitleError):
            next_title(title, [])

    @pytest.mark.parametrize("base", ["Trip", "x" * 84, "x" * 85, "x" * MAX_TITLE, "x" * 83 + " yyyyyyyy"])
    def test_all_titles_of_a_lineage_stand_between_its_least_and_its_greatest(self, base):
        least, greatest = lineage_range(base)
        taken = [base]
        for _ in range(12):
            taken.append(next_title(base, taken))
        taken.append(next_title(base, [base, base[:84] + " #999999999"]))
        assert all(least <= one <= greatest for one in taken[1:])

    def test_a_title_is_continued_by_itself_with_a_number(self):
        titles = ["Trip", "Trip #2", "Trip #3", "Trip #idea", "Trip to Rome #4", "Trip #2 #3"]
        assert numbered_titles_of("Trip", titles) == ["Trip #2", "Trip #3"]
        assert numbered_titles_of("Trip #2", titles) == ["Trip #2 #3"]
