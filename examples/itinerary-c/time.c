/** Just enough of RFC 3339 for these events: UTC, whole seconds. */
#include "itinerary.h"

static bool number(const char *text, size_t from, size_t to, int64_t *value) {
    *value = 0;
    for (size_t i = from; i < to; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        *value = *value * 10 + (text[i] - '0');
    }
    return true;
}

/**
 * Days since 1970-01-01 in the Gregorian calendar. Howard Hinnant, "chrono-compatible low-level date algorithms"; years
 * before 0 cannot be written here.
 */
static int64_t days_from_civil(int64_t year, int64_t month, int64_t day) {
    if (month <= 2) year--;
    int64_t era = (year >= 0 ? year : year - 399) / 400, year_of_era = year - era * 400;
    int64_t day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

bool unix_seconds(keyrail_text text, int64_t *seconds) {
    static const char form[] = "....-..-..T..:..:..Z";
    if (text.length != sizeof form - 1) return false;
    for (size_t i = 0; i < text.length; i++) {
        if (form[i] != '.' && text.data[i] != form[i]) return false;
    }
    int64_t year, month, day, hour, minute, second;
    bool numbers = number(text.data, 0, 4, &year) && number(text.data, 5, 7, &month) && number(text.data, 8, 10, &day)
                   && number(text.data, 11, 13, &hour) && number(text.data, 14, 16, &minute)
                   && number(text.data, 17, 19, &second);
    if (!numbers || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60) return false;
    *seconds = days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
    return true;
}
